package nlb

import (
	"cmp"
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/build"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/deploy"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/diff"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/model"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/observe"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/groups"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/presence"
)

var _ driver.Follower = nlb{}

// Follows implements driver.Mover. The listeners of the old NLB lead to the same server groups as those of the new one, which a plan for
// that brings in line. Only without such a plan nothing would follow the nodes. A new process that cannot read the listeners has none for
// the NLB that the Service is on: marks show the groups of its ports.
func (n nlb) Follows(svc *corev1.Service, when driver.Stage) []driver.Follower {
	if when != driver.Unplanned {
		return nil
	}
	shown := cmp.Or(n.Showing, driver.ShownBy(svc))
	for _, left := range n.Left(svc) {
		if former, ok := left.(nlb); ok && former.former == shown {
			return []driver.Follower{former}
		}
	}
	if n.Presence.Present() && !n.listeners.Known() {
		return []driver.Follower{nlb{engine: n.engine, former: n.ID()}}
	}
	return nil
}

// RefreshBackends implements driver.Follower. Nobody keeps what was read: the new place reads the groups again.
func (n nlb) RefreshBackends(ctx context.Context, svc *corev1.Service) (driver.Follower, error) {
	found := nlb{engine: n.engine, former: n.former}
	lb, err := n.readNLB(ctx, n.former)
	if err != nil || lb == nil {
		return found, err
	}
	group, in := n.shared.GroupOn(lb)
	found.observed = found.withLocation(location{Presence: presence.Found(lb.ID, !in && !driver.OwnedBy(svc, lb.Tags)), LB: *lb, Group: group})
	if found, err = found.withListeners(ctx); err != nil && !driver.IsUnread(err) {
		return found, err
	}
	own, err := observe.OwnGroups(ctx, n.api, mark.DefaultName(svc.UID))
	if err != nil {
		return found, err
	}
	params, _ := n.Params(svc)
	read, _, err := observe.Groups(ctx, n.api, svc, n.ownerOf(svc, found.observed), own, found.namedGroups(svc, params),
		n.knownGroups(svc, found.observed))
	if err == nil {
		found.groups.Set(read)
	}
	return found, err
}

// namedGroups are the groups of others that the annotation names, which it may do on an existing NLB, and those in which the Service has
// servers as its Record says: the annotation may have named them when another process read it.
func (o observed) namedGroups(svc *corev1.Service, params annotation.Params) []string {
	record, _ := driver.RecordOn(svc)
	ids := record.Joined
	if o.Presence.WasReused() {
		ids = append(slices.Clone(ids), joinedBy(params)...)
	}
	return ids
}

// PlanBackends implements driver.Follower: of a whole plan, as if the Service stayed here, only what brings groups in line that are there
// and that ports have.
func (n nlb) PlanBackends(in driver.Inputs) driver.Plan {
	in.Params = (&groups.StayReason{}).Params(in.Params, n.Presence, n.hasListener(in.Service))
	desired, _ := build.Build(n.buildInput(in))
	return followUp{plan{nlb: n, Plan: diff.Followed(desired, n.wholeModel(), n.ownerOf(in.Service, n.observed)), desired: desired}}
}

// followUp is a plan for servers behind an NLB that a Service leaves. It says nothing of the NLB that the Service is on.
type followUp struct{ plan }

// Deploy implements driver.Plan.
func (f followUp) Deploy(ctx context.Context, svc *corev1.Service, _ driver.Create) driver.Deployment {
	n := f.nlb
	n.desired = f.desired
	applier := &deploy.Applier{
		API: n.api, Model: n.wholeModel(), Busy: n.isBusy, Memory: &n.memory, Refused: n.refused, Held: f.heldWork(svc),
		MostServers: n.mostServers(svc),
	}
	err := applier.Run(ctx, f.Plan)
	n.groups.Value, n.jobs = applier.Model.Groups, n.jobs.withStarted(applier.Jobs)
	done := driver.Deployment{
		Balancer: n, Writes: applier.Writes, Progress: applier.Progress, Uncertain: applier.Uncertain, RefusedBackend: applier.RefusedServer,
		Interrupted: applier.Interrupted, Shared: f.changedGroups(), Err: err,
		Registered: func(address string) bool { return model.Registered(address, n.desired, n.wholeModel(), n.isChanging) },
	}
	if applier.Waits || f.Leaving || len(n.jobs) > 0 {
		done.Wait = soonPoll
	}
	return done
}

// isChanging reports whether a job on a group is under way. Nobody keeps the jobs that an earlier pass has started here: the group shows
// them.
func (n nlb) isChanging(groupID string) bool {
	at := slices.IndexFunc(n.groups.Value, func(g model.Group) bool { return g.ID == groupID })
	return n.busyGroup(groupID) || at >= 0 && slices.ContainsFunc(n.groups.Value[at].Servers, func(s alicloud.NLBServer) bool {
		return s.Status == alicloud.NLBServerAdding
	})
}

// changedGroups returns the ids of the groups whose servers the plan changes: the new place has the same ones.
func (f followUp) changedGroups() []string {
	var ids []string
	for i := range f.Plan.Steps {
		ids = append(ids, f.Plan.Steps[i].Group.ID)
	}
	return ids
}
