package build

import (
	"slices"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/backend"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/model"
)

// updateOnly reports whether an annotation that is not accepted decides on the listener. One that is there keeps what it has; with a
// default in the place of what the author of the Service wants, a new one could serve without its certificate or its access control.
func (b *builder) updateOnly(port int32, protocol string) bool {
	if protocol == alicloud.ProtocolHTTPS && !b.in.Params.Has(annotation.CertID) {
		if !b.in.Params.Refused(annotation.CertID) {
			b.addProblem(problem.ReasonInvalidAnnotation, "port %d: https needs the annotation %s", port, annotation.CertID)
		}
		return true
	}
	return b.model.KeepAccess || b.chosenTwice.Has(port) || b.in.Params.RefusesListener(protocol) ||
		protocol == alicloud.ProtocolHTTP && b.forwardedTwice.Has(int(port))
}

// keepUndecided keeps of a group what annotations decide on that are not accepted: the weights of its backends, or which nodes have the
// labels. It reports whether nothing can be said about the group at all.
func (b *builder) keepUndecided(group *model.Group) (blocked bool) {
	params := b.in.Params
	if !params.Invalid {
		return false
	}
	present := b.presentBackends(group.Name)
	if params.Refused(annotation.BackendIPVersion) && b.usesENIs() && b.in.ipVersion() == annotation.FamilyIPv6 {
		return true // the addresses of the other family would replace all backends
	}
	if params.Refused(annotation.BackendLabel) && !b.usesENIs() {
		if len(present) == 0 {
			return true
		}
		onlyPresent(group, present)
	}
	if backend.WeightsUndecided(params) || b.observed.Reused && b.in.Params.JoinsGroups() && params.Refused(annotation.Weight) {
		group.KeepWeights = true
		backend.JoinLike(group.Backends, present, func(s *alicloud.Backend) *int { return &s.Weight })
	}
	return b.observed.Reused && b.in.Params.JoinsGroups() && params.Refused(annotation.Weight) && len(present) == 0
}

// presentBackends are our backends in the observed group.
func (b *builder) presentBackends(name string) map[alicloud.BackendKey]int {
	present := map[alicloud.BackendKey]int{}
	if group := b.observed.Group(name); group != nil {
		for _, server := range group.Backends {
			if b.owner.Owns(server.Description) {
				present[server.BackendKey] = server.Weight
			}
		}
	}
	return present
}

// onlyPresent lets no backend join. Where none would be left, all of them stay.
func onlyPresent(group *model.Group, present map[alicloud.BackendKey]int) {
	group.Backends = slices.DeleteFunc(group.Backends, func(server alicloud.Backend) bool {
		_, ok := present[server.BackendKey]
		return !ok
	})
	if len(group.Backends) == 0 {
		group.Doubt, group.Gone = true, nil
	}
}
