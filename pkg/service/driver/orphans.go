package driver

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
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
	OrphanRouteEntry    = "route entry"
)

// OrphanQuery says what to look for.
type OrphanQuery struct {
	// Services are all of the cluster.
	Services []*corev1.Service
	// ClusterIDs are the IDs that this cluster has or may have had. Those on load balancers of its Services are found.
	ClusterIDs []string
	// Preserved has load balancers listed, too, that stayed because an annotation asked for that, and what stayed for that reason on those of
	// groups and on existing CLBs.
	Preserved bool
}

// Names reports whether the label or the annotation of a Service names the load balancer, so that the Service is on it or is to be.
func Names(svc *corev1.Service, loadBalancerID string) bool {
	return svc.Labels[LabelLoadBalancerID] == loadBalancerID || NamesByID(svc, loadBalancerID)
}

// NamesByID reports whether the annotation of a Service names a load balancer.
func NamesByID(svc *corev1.Service, loadBalancerID string) bool {
	asked, ok := annotation.Lookup(svc.Annotations, annotation.LoadBalancerID)
	return ok && strings.TrimSpace(asked) == loadBalancerID
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
