package groups

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/sharing"
)

// TestWhereAServiceIs: what this process knows comes first, then the listeners that were read, then what the Service shows; none of it
// counts for a load balancer that is not the group's.
func TestWhereAServiceIs(t *testing.T) {
	t.Parallel()
	const group, svc = "c/ns/edge", types.UID("a")
	name := types.NamespacedName{Namespace: "ns", Name: "a"}
	var memory Memory
	expect := func(why, want string) {
		t.Helper()
		if at := memory.In(group, svc, name, "lb-3"); at != want {
			t.Errorf("%s: the Service is on %q, want %q", why, at, want)
		}
	}
	expect("nothing is known", "")
	memory.Note(group, func(s *sharing.State) {
		s.LoadBalancers = []sharing.LoadBalancer{{ID: "lb-1"}, {ID: "lb-2"}, {ID: "lb-3"}}
	})
	expect("it shows one", "lb-3")
	memory.Note(group, func(s *sharing.State) {
		s.On = map[types.NamespacedName]sharing.Listed{name: {"lb-2": {{Number: 80}}}}
	})
	expect("it has a listener", "lb-2")
	memory.Note(group, func(s *sharing.State) { s.NoteListeners(name, "lb-3", []sharing.Port{{Number: 80}}) })
	expect("it has listeners on two, and shows one", "lb-3")
	memory.Note(group, func(s *sharing.State) { s.NoteListeners(name, "lb-3", nil) })
	memory.Put(svc, "lb-1")
	expect("it was put on one", "lb-1")
	memory.Put(svc, "lb-9")
	expect("it was put on one of another group", "lb-2")
	memory.Forget(svc)
	if id, ok := memory.At(svc); ok {
		t.Errorf("after it was forgotten, it is on %s", id)
	}
}

// TestRemovedServiceIsPutAgain: a Service of which everything was removed counts again once it is on a load balancer.
func TestRemovedServiceIsPutAgain(t *testing.T) {
	t.Parallel()
	const svc = types.UID("a")
	var memory Memory
	for what, then := range map[string]func(){"put": func() { memory.Put(svc, "lb-1") }, "forgotten": func() { memory.Forget(svc) }} {
		if memory.Removed(svc); !memory.isRemoved(svc) {
			t.Error("nothing is known of the removal")
		}
		if then(); memory.isRemoved(svc) {
			t.Errorf("%s: still removed", what)
		}
	}
}
