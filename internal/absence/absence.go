// Package absence decides when what answers lack counts as gone. One answer proves nothing: a list lags behind, comes from one of several
// copies, and leaves out without a word what a key may not see.
package absence

import "time"

// Row is a row of consecutive answers that lacked something. Its zero value says that nothing is missing, and follows an answer that shows
// it.
type Row struct {
	First, Last time.Time
	Count       int
	counted     time.Time
}

// Rule is what makes a row a proof: so many answers, the last of them so long after the first.
type Rule struct {
	Answers int
	Over    time.Duration
	// Spacing is how far apart answers are that count as two: those in quick succession may come from the same copy of a list.
	Spacing time.Duration
	// Pause is after how long without an answer a row begins anew, 0 for never.
	Pause time.Duration
}

// Lacking returns the row after one more answer, asked for at a time.
func (r Row) Lacking(asked time.Time, rule Rule) Row {
	if r.Count == 0 || rule.Pause > 0 && asked.Sub(r.Last) > rule.Pause {
		return Row{First: asked, Last: asked, Count: 1, counted: asked}
	}
	r.Last = asked
	if asked.Sub(r.counted) >= rule.Spacing {
		r.counted = asked
		r.Count++
	}
	return r
}

// Proves reports whether what the row lacks is gone.
func (r Row) Proves(rule Rule) bool {
	return r.Count >= rule.Answers && r.Last.Sub(r.First) >= rule.Over
}
