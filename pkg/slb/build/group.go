package build

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/sharing"
)

// Shared is what it means for a Service that it shares its CLB with the others of a group.
type Shared struct {
	Group mark.Group
	Place sharing.Place
	// Leads says that the annotations of the Service decide on the attributes of the CLB. Otherwise those of Leader do, which are Params.
	Leads  bool
	Leader *corev1.Service
	Params annotation.Params
}

// sharedLoadBalancer fills in the attributes of a CLB that the Service shares: those that the annotations of the leader ask for. Only the leader
// manages them.
func (b *builder) sharedLoadBalancer() {
	shared := b.in.Shared
	if shared.Leads {
		b.attributes()
		return
	}
	own, problems, removed := b.in.Params, b.problems, b.in.RemoveTags
	b.in.Params, b.in.RemoveTags = shared.Params, nil
	b.attributes()
	b.in.Params, b.problems, b.in.RemoveTags = own, problems, removed // the pass over the leader reports its problems
	b.model.LoadBalancer = alicloud.LoadBalancer{}
	b.model.CreateBlocked = b.model.CreateBlocked || own.Refuses(annotation.ScopeCreation) || own.Refused(annotation.BackendType)
	b.differences()
}

// shareable are the annotations that each Service of a group has for itself.
var shareable = []annotation.Suffix{
	annotation.Group, annotation.GroupOverflow, annotation.LoadBalancerID, annotation.ForceOverrideListeners, annotation.PreserveOnDelete,
	annotation.ExternalIPType, annotation.Hostname, annotation.TunnelType, annotation.Type,
}

// differences reports what the Service asks of the CLB otherwise than the leader.
func (b *builder) differences() {
	shared := b.in.Shared
	for _, row := range annotation.InstanceAnnotations() {
		want, have := b.in.Params.Get(row.Suffix), shared.Params.Or(row.Suffix, row.Default)
		if slices.Contains(shareable, row.Suffix) || !b.in.Params.Has(row.Suffix) || want == have {
			continue
		}
		effective := "does not set it"
		if have != "" {
			effective = fmt.Sprintf("has %q", have)
		}
		b.problem(problem.ReasonAnnotationNoEffect, "%s: %q has no effect: on the CLB of load balancer group %s, the oldest Service decides, which is %s and %s",
			row.Suffix, want, shared.Group, mark.ServiceName(shared.Leader), effective)
	}
}

// conflicts reports whether somebody else has the port on the CLB of the group.
func (b *builder) conflicts(port corev1.ServicePort) bool {
	if b.in.Shared == nil {
		return false
	}
	place := b.in.Shared.Place
	key := sharing.Port{Number: port.Port, UDP: port.Protocol == corev1.ProtocolUDP}
	owner, taken := place.Taken[key]
	if !taken && !place.Full {
		return false
	}
	b.model.Conflicts = append(b.model.Conflicts, alicloud.ListenerKey{Port: int(port.Port), Protocol: b.protocol(port)})
	switch {
	case place.Full:
	case owner.Name == "":
		b.problem(problem.ReasonListenerConflict, "port %d of load balancer group %s is in use by somebody outside of the group; choose another port or group, or set %s: \"true\"",
			port.Port, b.in.Shared.Group, annotation.GroupOverflow)
	default:
		b.problem(problem.ReasonListenerConflict, "port %d of load balancer group %s belongs to Service %s, which is older; choose another port or group, or set %s: \"true\"",
			port.Port, b.in.Shared.Group, owner, annotation.GroupOverflow)
	}
	return true
}

// full reports that the CLB of the group has no room for the Service.
func (b *builder) full() {
	if b.in.Shared != nil && b.in.Shared.Place.Full {
		b.problem(problem.ReasonListenerConflict, "the CLB of load balancer group %s has no room for the %d ports of the Service; choose another group, set %s: \"true\", or raise the quotas",
			b.in.Shared.Group, len(b.in.Service.Spec.Ports), annotation.GroupOverflow)
	}
}
