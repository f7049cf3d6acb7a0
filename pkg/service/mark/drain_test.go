package mark

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

// TestDrained: what is drained is still its owner's, by the rules of both programs, and the mark says again what it was before.
func TestDrained(t *testing.T) {
	t.Parallel()
	owner := Owner{Service: types.NamespacedName{Namespace: "default", Name: "web"}, ClusterID: "c1"}
	for _, plain := range []string{owner.PortMark(30080), owner.Mark("http-alt"), owner.NLBMark("30080", "TCP"),
		owner.NLBMark("80_90", "UDP")} {
		drained, ok := Drained(plain, 7)
		if !ok || drained == plain || !owner.Owns(drained) && !owner.OwnsNLB(drained) {
			t.Errorf("%q becomes %q, %v, want another mark of the owner", plain, drained, ok)
		}
		if text, weight, ok := Undrained(drained); text != plain || weight != 7 || !ok {
			t.Errorf("%q was %q with weight %d, %v, want %q with 7", drained, text, weight, ok, plain)
		}
	}
	long := Owner{Service: owner.Service, ClusterID: strings.Repeat("c", 130)}.NLBGroupName("30080", "TCP")
	for _, text := range []string{owner.PortMark(30080), owner.NLBMark("80_90", "UDP"), "by hand", "", "k8s/80/web_drained_7/default/c1",
		"k8s/80_drained_x/web/default/c1", "_drained_7", long} {
		if plain, weight, ok := Undrained(text); plain != text || weight != 0 || ok {
			t.Errorf("%q was %q with weight %d, %v, want it as it is", text, plain, weight, ok)
		}
	}
	if text, ok := Drained("by hand", 7); text != "by hand" || ok {
		t.Errorf("what is no mark becomes %q, %v", text, ok)
	}
}
