package slb

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/model"
)

// literalClusterID is what the official CCM writes where no cluster id is configured, in every such cluster.
const literalClusterID = "clusterid"

// marking is the cluster id that the marks of a Service on its CLB carry.
type marking struct {
	loadBalancerID, clusterID string
}

// markedOn returns the cluster id that a Service's marks on its CLB carry, and false where marks with that id may be those of a Service of
// the same name in another cluster. On a CLB of our own, whose tag names the Service, any mark of its name is its; on one that several
// clusters may share, only the configured id proves that, and the literal one when the Service was there before. serves reports whether
// a backend server is one of the cluster.
func (c clb) markedOn(svc *corev1.Service, serves func(alicloud.Backend) bool) (clusterID string, proven bool) {
	configured := c.config.ClusterID
	switch {
	case !c.Group.IsZero():
		return c.Group.ClusterID, true
	case !c.Presence.Present():
		return configured, true
	case c.marking.loadBalancerID == c.loadBalancer.Value.ID:
		return c.marking.clusterID, true
	}
	marks := model.ClusterIDsOn(&model.Model{Listeners: c.listeners.Value, Groups: c.groups.Value}, mark.ServiceName(svc))
	reused := c.Presence.Reused()
	switch {
	case !reused && len(marks) > 0:
		return marks[0], true
	case !reused, !slices.Contains(marks, literalClusterID), configured != literalClusterID && slices.Contains(marks, configured):
		return configured, true
	case wasOn(svc, &c.loadBalancer.Value), serves != nil && c.servesFrom(svc, serves):
		return literalClusterID, true
	}
	return configured, configured != literalClusterID
}

// wasOn reports whether the Service shows that it was on the CLB before. Its status proves that, and its label alone does not: backup
// tools restore labels in other clusters, and no status.
func wasOn(svc *corev1.Service, lb *alicloud.LoadBalancer) bool {
	return len(svc.Status.LoadBalancer.Ingress) > 0 && driver.Labeled(svc) == lb.ID || showsAddress(svc, lb)
}

// showsAddress reports whether the status of the Service shows the address of the CLB. Unlike its label, users do not write its status.
func showsAddress(svc *corev1.Service, lb *alicloud.LoadBalancer) bool {
	return slices.ContainsFunc(svc.Status.LoadBalancer.Ingress, func(ingress corev1.LoadBalancerIngress) bool {
		return ingress.IP != "" && ingress.IP == lb.Address
	})
}

// servesFrom reports whether one of the backend servers with the literal mark of the Service is one of the cluster.
func (c clb) servesFrom(svc *corev1.Service, serves func(alicloud.Backend) bool) bool {
	owner := mark.Owner{Service: mark.ServiceName(svc), ClusterID: literalClusterID}
	return slices.ContainsFunc(c.groups.Value, func(group model.Group) bool {
		return slices.ContainsFunc(group.Backends, func(b alicloud.Backend) bool { return owner.Owns(b.Description) && serves(b) })
	})
}

// serverOf returns what reports whether a backend server is one of the cluster.
func serverOf(in driver.Inputs) func(alicloud.Backend) bool {
	return func(b alicloud.Backend) bool {
		if b.Type == alicloud.BackendENI {
			return in.Interfaces[b.ServerIP] == b.ServerID
		}
		return in.Nodes.HasInstance(b.ServerID)
	}
}

// errUnproven says that a CLB cannot be used because marks on it may be those of another cluster.
func errUnproven(svc *corev1.Service, id string) error {
	return &problem.ConfigError{
		Field: annotation.LoadBalancerID.Key(),
		Reason: fmt.Sprintf("CLB %s has listeners or vServer groups of a Service %s of a cluster with the ID %s, which may be another cluster; set clusterID in the cloud config to an ID of this cluster",
			id, mark.ServiceName(svc), literalClusterID),
		Event: problem.ReasonLoadBalancerNotReusable,
	}
}
