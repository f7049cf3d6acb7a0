package build

import (
	"slices"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/model"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/backend"
)

// keepUndecided keeps of a group what annotations decide on that are not accepted: the weights of its servers, or which nodes have the
// labels. Nodes and pods that are gone leave all the same.
func (b *builder) keepUndecided(group *model.Group) {
	params := b.in.Params
	if !params.Refuses(annotation.ScopeBackends) {
		return
	}
	present := b.presentWeights(group)
	unknown := b.unknownFamily() || params.Refused(annotation.ServerGroupType) && b.observed.Matching(group) == nil ||
		group.Foreign && params.Refused(annotation.Weight) && len(present) == 0
	if unknown {
		group.Doubt, group.Servers, group.Draining = true, nil, nil
		return
	}
	if b.unknownLabels() {
		onlyPresent(group, present)
	}
	if backend.WeightsUndecided(params) || group.Foreign && params.Refused(annotation.Weight) {
		group.KeepWeights = true
		backend.JoinLike(group.Servers, present, func(s *alicloud.NLBServer) *int { return &s.Weight })
	}
}

// unknownLabels reports whether nobody knows which nodes are backends, unknownFamily the same of the addresses of pods.
func (b *builder) unknownLabels() bool {
	return b.in.Params.Refused(annotation.BackendLabel) && !b.in.usesPods()
}

func (b *builder) unknownFamily() bool {
	return b.in.Params.Refused(annotation.BackendIPVersion) && b.in.usesPods() && b.in.dualStack()
}

// unknownBackends reports whether nobody knows which backends a group has.
func (b *builder) unknownBackends() bool {
	return b.unknownLabels() || b.unknownFamily() || b.in.Params.Refused(annotation.ServerGroupType)
}

// presentWeights are the weights of our servers in the group that is there.
func (b *builder) presentWeights(group *model.Group) map[alicloud.NLBServerKey]int {
	present := map[alicloud.NLBServerKey]int{}
	have := b.observed.Matching(group)
	if have == nil {
		return present
	}
	for i := range have.Servers {
		server := &have.Servers[i]
		if ours := server.Description == group.Description || b.owner.OwnsNLB(server.Description); ours &&
			server.Status != alicloud.NLBServerRemoving {
			present[model.ServerKey(server)] = server.Weight
		}
	}
	return present
}

// onlyPresent lets no server join. Where none would be left, all of them stay.
func onlyPresent(group *model.Group, present map[alicloud.NLBServerKey]int) {
	group.Servers = slices.DeleteFunc(group.Servers, func(server alicloud.NLBServer) bool {
		_, ok := present[model.ServerKey(&server)]
		return !ok
	})
	if len(group.Servers) == 0 {
		group.Doubt, group.Gone = true, nil
	}
}
