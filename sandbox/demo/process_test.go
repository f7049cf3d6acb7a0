package demo

import (
	"strings"
	"testing"
)

func TestTailBufferKeepsTheEnd(t *testing.T) {
	t.Parallel()
	var b tailBuffer
	for range 3 {
		if _, err := b.Write([]byte(strings.Repeat("x", tailSize/2) + "\n")); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := b.Write([]byte("the reason\n")); err != nil {
		t.Fatal(err)
	}
	if got := len(b.String()); got != tailSize {
		t.Errorf("%d bytes are kept, want %d", got, tailSize)
	}
	if got := lastLine(b.String()); got != "the reason" {
		t.Errorf("the last line is %q", got)
	}
}
