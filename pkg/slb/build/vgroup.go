package build

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/backend"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/model"
)

// joinGroups notes which ports join groups of others.
func (b *builder) joinGroups() {
	if !b.observed.Reused {
		return
	}
	ids, twice, problems := backend.JoinedGroups(b.in.Params, b.in.Service.Spec.Ports)
	b.joinedTwice, b.problems = sets.New(twice...), append(b.problems, problems...)
	b.joined = ids
}

// joinGroup turns the group of a port into our share of a group of others. It is blocked when there is no such group: then
// everything of the port stays as it is.
func (b *builder) joinGroup(port int32, group model.Group) (joined model.Group, blocked bool) {
	b.divideWeight(&group)
	if b.observed.Reused && (b.in.Params.Refused(annotation.VGroupPort) || b.joinedTwice.Has(port)) {
		return b.stayInGroup(group)
	}
	id, ok := b.joined[port]
	if !ok {
		return group, false
	}
	if !b.observed.ForeignGroups().Has(id) {
		b.addProblem(problem.ReasonSkipSyncBackends, "%s: port %d is not served: %s is not a group of the CLB that Services can join",
			annotation.VGroupPort, port, id)
		return group, true
	}
	group.Name = id
	return group, false
}

// divideWeight spreads the weight that the Service has in a group of others.
func (b *builder) divideWeight(group *model.Group) {
	if b.observed.Reused && b.in.Params.JoinsGroups() && b.in.Params.Has(annotation.Weight) {
		backend.Divide(group.Backends, b.in.Params.Int(annotation.Weight, alicloud.MaxWeight), func(b *alicloud.Backend) *int {
			return &b.Weight
		})
		group.Counted = false
	}
}

// stayInGroup keeps a port in the group that it is in while nobody knows which one the author of the Service wants: the one of others that
// has backends with the mark of the port, else one of our own. Without either the port is blocked.
func (b *builder) stayInGroup(group model.Group) (joined model.Group, blocked bool) {
	for i := range b.observed.Groups {
		have := &b.observed.Groups[i]
		if have.Foreign() && slices.ContainsFunc(have.Backends, func(server alicloud.Backend) bool { return server.Description == group.Name }) {
			group.Name = have.Name
			return group, false
		}
	}
	return group, b.observed.Group(group.Name) == nil
}

// addGroup adds the group of a port. Ports that share the node port have the same one; ports that join the same group of
// others have their backend servers in it together.
func (b *builder) addGroup(group model.Group) {
	i := slices.IndexFunc(b.model.Groups, func(g model.Group) bool { return g.Name == group.Name })
	if i < 0 {
		b.model.Groups = append(b.model.Groups, group)
		return
	}
	have := &b.model.Groups[i]
	have.Backends = backend.Join(have.Backends, group.Backends, backendKey)
	have.Draining = backend.Join(have.Draining, group.Draining, backendKey)
	have.Dead, have.Held = have.Dead.Union(group.Dead), have.Held.Union(group.Held)
	switch {
	case !group.Doubt:
	case !have.Doubt:
		have.Doubt, have.Gone = true, group.Gone
	default:
		have.Gone = have.Gone.Intersection(group.Gone)
	}
}

func backendKey(b *alicloud.Backend) alicloud.BackendKey { return b.BackendKey }
