package mark

import (
	"strings"
	"testing"
)

// TestSameGroup: a group is the one that was read from its own mark, however long, and no other one.
func TestSameGroup(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", maxTagValue)
	groups := []Group{{"c1", "default", "edge"}, {"c1", "default", "other"}, {"c2", "default", "edge"}, {"c1", "default", long},
		{"c1", "default", long + "b"}, {}}
	for i, a := range groups {
		for j, b := range groups {
			read, ok := ParseGroup(b.Mark())
			if !ok {
				t.Fatalf("%q is no mark", b.Mark())
			}
			if a.Is(b) != (i == j) || a.Is(read) != (i == j) || read.Is(a) != (i == j) {
				t.Errorf("%v is %v: %v, from its mark %v, and the reverse %v", a, b, a.Is(b), a.Is(read), read.Is(a))
			}
		}
	}
}
