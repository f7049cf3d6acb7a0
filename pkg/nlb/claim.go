package nlb

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/model"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
)

// shownNLB returns the load balancer of the Service's own that nothing in the cloud names any more, nil for none: somebody removed its
// tags, and the annotation gave it another name. The status of the Service still names it, which only controllers can write, by its name or
// in the Record, and the load balancer shows that a manager of this cluster made it.
func (e *engine) shownNLB(ctx context.Context, svc *corev1.Service, lastID string) (*alicloud.NLB, error) {
	record, _ := driver.RecordOn(svc)
	ids := []string{lastID, record.Made}
	for _, shown := range svc.Status.LoadBalancer.Ingress {
		if id, _, ok := strings.Cut(shown.Hostname, "."); ok && strings.HasPrefix(id, "nlb-") {
			ids = append(ids, id) // the name of a load balancer begins with its id
		}
	}
	slices.Sort(ids)
	for _, id := range slices.Compact(ids) {
		lb, err := e.readNLB(ctx, id)
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
func (e *engine) isShown(svc *corev1.Service, lb *alicloud.NLB, record driver.Record) bool {
	made := record.Made == lb.ID
	if driver.IsAnothers(lb.Tags) || !made && !showsName(svc, lb) || record.UsesExisting(lb.ID) {
		return false
	}
	if cluster, tagged := lb.Tag(mark.TagCluster); tagged {
		return cluster == e.config.ClusterID
	}
	// Without any tag, that a name in the status leads to it does not tell it from one that the Service used by its id.
	return lb.ModificationProtectionReason == mark.ProtectionReason && (made || lb.Name == mark.DefaultName(svc.UID))
}

// isOwn reports whether a load balancer with these listeners is the Service's own, see [driver.Evidence].
func isOwn(svc *corev1.Service, lb *alicloud.NLB, listeners []model.Listener) bool {
	return driver.OwnedBy(svc, lb.Tags) || driver.Evidence{
		ID: lb.ID, Name: lb.Name, Tags: lb.Tags, Shown: showsName(svc, lb),
		Marked: slices.ContainsFunc(listeners, func(l model.Listener) bool { return isOf(svc, &l) }),
	}.Owns(svc)
}

// isOf reports whether a listener has the mark of the Service, of whatever cluster: on a load balancer of its own, nobody else writes one.
func isOf(svc *corev1.Service, l *model.Listener) bool {
	marked, _, ok := mark.ParseNLB(model.Text(l.Description))
	return ok && marked == mark.ServiceName(svc)
}

// othersListeners names those listeners of a load balancer of the Service's own that are not the Service's.
func othersListeners(svc *corev1.Service, listeners []model.Listener) []string {
	var others []string
	for i := range listeners {
		if l := &listeners[i]; !isOf(svc, l) {
			others = append(others, l.Key())
		}
	}
	return others
}

// showsName reports whether the status of the Service has the name of the load balancer. A name that its author has chosen proves nothing,
// also where the annotation is gone and the status still shows it, or where it was chosen for a load balancer of another product.
func showsName(svc *corev1.Service, lb *alicloud.NLB) bool {
	_, chosen := annotation.Lookup(svc.Annotations, annotation.Hostname)
	record, _ := driver.RecordOn(svc)
	if chosen || record.Denies(lb.ID) || slices.Contains(record.Annotations, string(annotation.Hostname)) {
		return false
	}
	return slices.ContainsFunc(svc.Status.LoadBalancer.Ingress, func(shown corev1.LoadBalancerIngress) bool {
		return shown.Hostname != "" && shown.Hostname == lb.DNSName
	})
}
