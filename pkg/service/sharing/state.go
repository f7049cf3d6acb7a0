package sharing

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// State is what is known of one group. It is a value; passes over the Services of the group take turns.
type State struct {
	// LoadBalancers are those of the group as they were last read, and On the listeners that each Service has there.
	LoadBalancers []LoadBalancer
	On            map[types.NamespacedName]Listed
	// Seen says that the group was searched for, so that finalizers say nothing about processes before this one.
	Seen bool
	// MaybeCreated says that a creation was not answered.
	MaybeCreated bool
	// Unprotected is a load balancer of the group whose removal was begun, so that its delete protection is off; empty for none.
	Unprotected string
}

// Listed are the ports on which a Service has listeners, by the load balancers of a group.
type Listed map[string][]Port

// With returns what a Service has once it has one more listener.
func (l Listed) With(id string, port Port) Listed {
	return l.Having(id, append(slices.Clone(l[id]), port))
}

// Having returns what a Service has once it has listeners on these ports of a load balancer, and no other ones there.
func (l Listed) Having(id string, ports []Port) Listed {
	all := Listed{}
	maps.Copy(all, l)
	if delete(all, id); len(ports) > 0 {
		all[id] = ports
	}
	return all
}

// NoteListeners notes on which ports of a load balancer a Service has listeners.
func (s *State) NoteListeners(svc types.NamespacedName, id string, ports []Port) {
	on := map[types.NamespacedName]Listed{}
	maps.Copy(on, s.On)
	if on[svc] = on[svc].Having(id, ports); len(on[svc]) == 0 {
		delete(on, svc)
	}
	s.On = on
}

// For are the load balancers of the group as they are for a Service: what it has there itself is not somebody else's, also where it only
// stays in the group.
func (s *State) For(svc types.NamespacedName) []LoadBalancer {
	has := s.On[svc]
	all := slices.Clone(s.LoadBalancers)
	for i := range all {
		if own := has[all[i].ID]; len(own) > 0 {
			all[i].Foreign = slices.DeleteFunc(slices.Clone(all[i].Foreign), func(port Port) bool { return slices.Contains(own, port) })
		}
	}
	return all
}

// Has reports whether the load balancer was one of the group when that was last read.
func (s *State) Has(id string) bool {
	return slices.ContainsFunc(s.LoadBalancers, func(lb LoadBalancer) bool { return lb.ID == id })
}

// NoteProtection notes that a removal of a load balancer was begun, which switches its delete protection off, or that it is protected
// again.
func (s *State) NoteProtection(id string, removal, protected bool) {
	switch {
	case removal:
		s.Unprotected = id
	case s.Unprotected == id && protected:
		s.Unprotected = ""
	}
}
