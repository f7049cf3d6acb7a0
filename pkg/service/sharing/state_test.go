package sharing

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

// TestOwnPortsAreNotForeign: the listeners of a Service that only stays in a group count as somebody else's for the others, and not for
// itself.
func TestOwnPortsAreNotForeign(t *testing.T) {
	t.Parallel()
	name := types.NamespacedName{Namespace: "ns", Name: "a"}
	own, others := Port{Number: 80}, Port{Number: 22}
	state := State{LoadBalancers: []LoadBalancer{{ID: "lb-1", Foreign: []Port{own, others}}, {ID: "lb-2", Foreign: []Port{own}}},
		On: map[types.NamespacedName]Listed{name: {"lb-1": {own}}}}
	for svc, want := range map[types.NamespacedName][][]Port{name: {{others}, {own}}, {Namespace: "ns", Name: "b"}: {{own, others}, {own}}} {
		for i, lb := range state.For(svc) {
			if !slices.Equal(lb.Foreign, want[i]) {
				t.Errorf("for %s, the foreign ports of %s are %v, want %v", svc, lb.ID, lb.Foreign, want[i])
			}
		}
	}
	if len(state.LoadBalancers[0].Foreign) != 2 {
		t.Error("the state has changed")
	}
}

// TestProtectionIsRemembered: that of a load balancer whose removal was begun is off until it is read as on.
func TestProtectionIsRemembered(t *testing.T) {
	t.Parallel()
	var state State
	state.NoteProtection("lb-1", true, false)
	state.NoteProtection("lb-1", false, false)
	state.NoteProtection("lb-2", false, true)
	if state.Unprotected != "lb-1" {
		t.Errorf("unprotected is %q", state.Unprotected)
	}
	if state.NoteProtection("lb-1", false, true); state.Unprotected != "" {
		t.Errorf("unprotected is %q", state.Unprotected)
	}
}
