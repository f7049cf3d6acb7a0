package service

import (
	"cmp"
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Kinds of an [Orphan].
const (
	OrphanLoadBalancer  = "load balancer"
	OrphanAccessList    = "access control list"
	OrphanListener      = "listener"
	OrphanGroup         = "vServer group"
	OrphanServerGroup   = "server group"
	OrphanSecurityGroup = "security group"
	OrphanBackend       = "backend server"
)

// Orphan is something of this cluster's in the cloud that no Service owns. It costs money or takes up a quota.
type Orphan struct {
	// Kind is one of the constants above.
	Kind string `json:"kind"`
	// ID is that of the cloud; a listener's is its protocol and port.
	ID string `json:"id"`
	// Name is the cloud's; a listener's is its description.
	Name string `json:"name"`
	// In is the load balancer, or for a backend server the group, that it is in.
	In string `json:"in,omitempty"`
	// Reason says why no Service owns it.
	Reason string `json:"reason"`
}

// String returns the orphan in one line.
func (o Orphan) String() string {
	text := o.Kind + " " + o.ID
	if o.Name != "" && o.Name != o.ID {
		text += " (" + o.Name + ")"
	}
	if o.In != "" {
		text += " in " + o.In
	}
	return text + ": " + o.Reason
}

// Orphans returns what the cluster's marks are on in the cloud and none of the Services owns, of every product. It reads only.
func (r *Reconciler) Orphans(ctx context.Context, services []*corev1.Service) ([]Orphan, error) {
	found := []Orphan{}
	for _, engine := range r.opts.Engines {
		more, err := engine.Orphans(ctx, services)
		if err != nil {
			return nil, err
		}
		found = append(found, more...)
	}
	slices.SortFunc(found, func(a, b Orphan) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.In, b.In), cmp.Compare(a.ID, b.ID))
	})
	return found, nil
}
