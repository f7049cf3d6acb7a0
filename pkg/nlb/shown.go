package nlb

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
)

// shown returns the load balancer of the Service's own that nothing in the cloud names any more, nil for none: somebody removed its tags, and the
// annotation gave it another name. The status of the Service still names it, which only controllers can write, by its name or in the Record, and
// the load balancer shows that a manager of this cluster made it.
func (e *engine) shown(ctx context.Context, svc *corev1.Service, lastID string) (*alicloud.NLB, error) {
	record, _ := service.RecordOn(svc)
	ids := []string{lastID, record.LoadBalancerID}
	for _, shown := range svc.Status.LoadBalancer.Ingress {
		if id, _, ok := strings.Cut(shown.Hostname, "."); ok && strings.HasPrefix(id, "nlb-") {
			ids = append(ids, id) // the name of a load balancer begins with its id
		}
	}
	slices.Sort(ids)
	for _, id := range slices.Compact(ids) {
		lb, err := e.get(ctx, id)
		if err != nil {
			return nil, err
		}
		if lb != nil && e.isShown(svc, lb, record) {
			return lb, nil
		}
	}
	return nil, nil
}

// isShown reports whether the status names a load balancer that was made for a Service and has no owner.
func (e *engine) isShown(svc *corev1.Service, lb *alicloud.NLB, record service.Record) bool {
	cluster, _ := lb.Tag(mark.TagCluster)
	if hasTag(lb, mark.TagOwner) || hasTag(lb, mark.TagGroup) || hasTag(lb, mark.TagPreserved) || cluster != e.config.ClusterID && (cluster != "" || lb.ModificationProtectionReason != mark.ProtectionReason) {
		return false
	}
	return record.LoadBalancerID == lb.ID || showsName(svc, lb)
}

// showsName reports whether the status of the Service has the name of the load balancer.
func showsName(svc *corev1.Service, lb *alicloud.NLB) bool {
	return slices.ContainsFunc(svc.Status.LoadBalancer.Ingress, func(shown corev1.LoadBalancerIngress) bool {
		return shown.Hostname != "" && shown.Hostname == lb.DNSName
	})
}
