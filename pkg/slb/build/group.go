package build

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
)

// sharedLoadBalancer fills in the attributes of a CLB that the Service shares: those that the annotations of the leader ask for. Only the
// leader manages them.
func (b *builder) sharedLoadBalancer() {
	shared := b.in.Shared
	if shared.Leads {
		b.buildAttributes()
		return
	}
	own, problems, removed := b.in.Params, b.problems, b.in.RemoveTags
	b.in.Params, b.in.RemoveTags = shared.Params, nil
	b.buildAttributes()
	b.in.Params, b.problems, b.in.RemoveTags = own, problems, removed // the pass over the leader reports its problems
	b.model.LoadBalancer = alicloud.LoadBalancer{}
	b.model.CreateBlocked = b.model.CreateBlocked || own.Refuses(annotation.ScopeCreation) || own.Refused(annotation.BackendType)
	b.problems = append(b.problems, shared.Differences(own, annotation.InstanceAnnotations())...)
}

// conflictsInGroup reports whether somebody else has the port on the CLB of the group, or the CLB has no room for it.
func (b *builder) conflictsInGroup(port corev1.ServicePort) bool {
	refused, problems := b.in.Shared.Refuses(port)
	refused = refused || b.in.PortRoom.Refuses(port)
	if refused {
		b.model.Conflicts = append(b.model.Conflicts, alicloud.ListenerKey{Port: int(port.Port), Protocol: b.protocolOf(port)})
	}
	b.problems = append(b.problems, problems...)
	return refused
}
