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

// OrphanQuery says what to look for.
type OrphanQuery struct {
	// Services are all of the cluster.
	Services []*corev1.Service
	// ClusterIDs are the IDs that this cluster has or may have had, besides those on load balancers of its Services.
	ClusterIDs []string
	// Preserved has load balancers listed, too, that stayed because an annotation asked for that.
	Preserved bool
}

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
	// ClusterID is the one that it is marked with.
	ClusterID string `json:"clusterID,omitempty"`
	// Delete are the commands of the command line of Alibaba Cloud that delete it, in their order.
	Delete []string `json:"delete"`
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

// Orphans returns what the cluster's marks are on in the cloud and none of the Services owns, of every product, and why something of it
// could not be read: then there may be more. It reads only.
func (r *Reconciler) Orphans(ctx context.Context, query OrphanQuery) (found []Orphan, unread []error) {
	found = []Orphan{}
	for _, engine := range r.opts.Engines {
		more, err := engine.Orphans(ctx, query)
		found = append(found, more...)
		if err != nil {
			unread = append(unread, leaves(err)...)
		}
	}
	slices.SortFunc(found, func(a, b Orphan) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.In, b.In), cmp.Compare(a.ID, b.ID))
	})
	return found, unread
}
