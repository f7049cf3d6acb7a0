package sharing

import (
	"maps"
	"slices"
)

// putKeeping places a Service that does not ask for the group any more on the load balancer where it is served until it has another place.
// Others have only the ports there on which they have listeners: for those, the listeners of the Service are somebody else's. The load
// balancer is nil where a process before this one has put the Service there, and nobody has read those of the group yet.
func (d *decision) putKeeping(on *balancer, s *Service) {
	if on == nil {
		d.places[s.UID] = Place{ID: s.At}
		return
	}
	d.putService(on, s)
	maps.DeleteFunc(d.places[s.UID].Taken, func(port Port, _ Owner) bool {
		owner := on.owners[port]
		return owner != nil && !slices.Contains(owner.Has[on.ID], port)
	})
}
