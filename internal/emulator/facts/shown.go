package facts

// shownBy names, for each fact that no scenario checks, the test of the emulator that shows how it behaves.
var shownBy = map[string]string{
	"common.settle":         "TestClock",
	"common.rates-unlisted": "TestPublished",
}

// ShownBy is the test that shows a fact which no scenario checks, "" for other facts.
func (f *Fact) ShownBy() string { return shownBy[f.ID] }
