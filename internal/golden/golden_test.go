package golden

import "testing"

func TestReplacePart(t *testing.T) {
	t.Parallel()
	got, err := replacePart("a\n<!-- generated:x -->\nold\n<!-- end of generated part -->\nb\n", "x", "new\n")
	if want := "a\n<!-- generated:x -->\n\nnew\n\n<!-- end of generated part -->\nb\n"; err != nil || got != want {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := replacePart("a", "x", ""); err == nil {
		t.Error("a page without the part was accepted")
	}
}
