package nlb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/waits"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/build"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/deploy"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/diff"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/model"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/backend"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/refusal"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/sharing"
)

// Backends implements driver.Balancer.
func (n nlb) Backends(in driver.Inputs) backend.Input {
	in.Params = n.stayingParams(in.Service, in.Params)
	return n.buildInput(in).Backends()
}

// buildInput is what the desired state is built from.
func (n nlb) buildInput(in driver.Inputs) build.Input {
	return build.Input{
		Service: in.Service, Params: in.Params, Config: n.config, ClusterID: n.clusterID(n.config.ClusterID), Observed: n.wholeModel(),
		Facts: in.Facts,
	}
}

// revertedParams returns the annotations with the defaults of those that were removed. The settings of a load balancer that the Service
// does not manage are not reverted.
func (n nlb) revertedParams(in driver.Inputs) annotation.Params {
	if n.Reused() && !in.Params.OverridesListeners() {
		return in.Params
	}
	return in.Params.Revert(in.Applied.Annotations)
}

// Plan implements driver.Balancer.
func (n nlb) Plan(ctx context.Context, in driver.Inputs) (driver.Decision, error) {
	decision := driver.Decision{Plan: plan{nlb: n}, Problems: n.Stays.Problems()}
	in.Params = n.stayingParams(in.Service, in.Params)
	if n.refusal != nil {
		decision.Problems = append(decision.Problems, problem.Newf(n.refusal.Event, "%v; the Service stays on NLB %s", n.refusal, n.ID()))
	}
	if n.isLocked() {
		lb := &n.lb.Value
		decision.Problems = append(decision.Problems,
			problem.Newf(problem.ReasonLoadBalancerLocked, "NLB %s is locked (%s): nothing is changed until the lock is gone", lb.ID,
				cmp.Or(strings.Join(lb.Locks, ", "), lb.Status)))
		n.lb.Invalidate("it is locked")
		decision.Plan = plan{nlb: n}
		return decision, nil
	}
	if instead, err := n.withoutCreation(in.Now); instead != nil || err != nil {
		decision.Plan = instead
		return decision, err
	}
	n.creations = n.creations.unlessWorking(n.Presence.Present() && n.lb.Value.Status == alicloud.NLBActive)
	shared, err := n.sharedWith(in.Service)
	if err != nil {
		return decision, err
	}
	record := n.recordFor(in, shared)
	record.Left = n.leftTags
	input := n.buildInput(in)
	input.Shared = shared
	input.Params = n.revertedParams(in)
	if input.NeedsZones() {
		if err = n.discoverZones(ctx, &input); err != nil {
			return decision, err
		}
	}
	input.LeaveGroups = annotation.NotIn(in.Applied.SecurityGroups, record.SecurityGroups)
	input, conflicts, err := n.leaveOutSetByOthers(input)
	if err != nil {
		return decision, err
	}
	if input.RemoveTags, err = n.tagsToRemove(in, record); err != nil {
		return decision, err
	}
	input.RemoveCertificates = annotation.NotIn(in.Applied.Certificates, record.Certificates)
	desired, problems := build.Build(input)
	kept, err := n.keepOthers(in, shared, desired, &record)
	if err != nil {
		return decision, err
	}
	if n.isUnwanted(in, problems) {
		n.failures = append(slices.Clone(n.failures),
			&problem.WaitError{Reason: "the NLB that was created is not what the Service asks for by now, and is deleted", For: soonPoll})
		decision.Plan = plan{nlb: n, Plan: diff.Deletion(n.wholeModel())}
		return decision, nil
	}
	problems = slices.Concat(problems, kept, conflicts, n.leftAlone(desired), n.besideAccess(), n.unreadJobs())
	n.leaveUntagged(in.Service, desired)
	if n.isRestored(in, desired) {
		desired.Want.DeleteProtection = &desired.LoadBalancer.DeletionProtection
	}
	if !slices.Equal(n.ports, in.Service.Spec.Ports) {
		n.ports, n.refused = in.Service.Spec.Ports, nil
	}
	desired.Refused = n.refused
	steps := n.stepsTo(in.Service, desired)
	steps.Steps = n.withoutUsed(in.Service, n.withoutUnread(steps.Steps))
	decision.Problems = append(decision.Problems, append(problems, steps.Problems...)...)
	record = n.Known.RecordPlaces(record)
	decision.Applied, decision.Plan = &record, plan{nlb: n, Plan: steps, desired: desired}
	return decision, nil
}

// discoverZones chooses the zones of a new NLB of the Service's own.
func (n nlb) discoverZones(ctx context.Context, input *build.Input) error {
	if !n.Group.IsZero() {
		return build.ErrNoZones(nil)
	}
	vSwitches, err := n.api.DescribeVSwitches(ctx, n.config.VPCID)
	if err != nil {
		return fmt.Errorf("find the zones of the new NLB: %w", err)
	}
	return input.DiscoverZones(vSwitches)
}

// besideAccess reports security groups that look like the one for the source ranges. The manager touches only that: which of them the
// author of the Service, or somebody else, has made is not known.
func (n nlb) besideAccess() []problem.Problem {
	if len(n.accessBeside) == 0 || n.access.Value == nil {
		return nil
	}
	return []problem.Problem{problem.Newf(problem.ReasonKeptInUse,
		"beside security group %s, which the manager uses, %s has the owner tag of the Service; if nobody uses it, delete it",
		n.access.Value.ID, problem.Some(n.accessBeside))}
}

// unreadJobs reports that the manager may not read whether its jobs have ended, so that each of them takes longer.
func (n nlb) unreadJobs() []problem.Problem {
	err := n.awaits.forbiddenError()
	if err == nil {
		return nil
	}
	return []problem.Problem{problem.Newf(problem.ReasonFeatureNotSupported,
		"the states of jobs cannot be read, so that each change takes some seconds longer; the role needs nlb:ListAsynJobs or nlb:GetJobStatus: %s", alicloud.Lasting(err))}
}

// isUnwanted reports whether the NLB is not what the Service asks for, or may have: its author has changed it while nobody knew what came
// of the creation. Nothing is on it yet, and the Service does not show it.
func (n nlb) isUnwanted(in driver.Inputs, found []problem.Problem) bool {
	record, _ := driver.RecordOn(in.Service)
	if !n.Group.IsZero() || n.ID() == "" || n.ID() != record.Made || len(n.listeners.Value)+len(in.Service.Status.LoadBalancer.Ingress) > 0 ||
		!driver.OwnedBy(in.Service, n.lb.Value.Tags) {
		return false
	}
	return problem.HasReason(found, problem.ReasonImmutableAttribute) || n.Refuse(in.Params) != nil
}

// leaveUntagged leaves the owner tag out of what is wanted, unless the NLB has it, or has lost it since it was created: with the tag, it
// would be deleted with the Service.
func (n nlb) leaveUntagged(svc *corev1.Service, desired *model.Model) {
	if !n.Group.IsZero() || n.Reused() || n.ID() == "" || driver.OwnedBy(svc, n.lb.Value.Tags) {
		return
	}
	if record, _ := driver.RecordOn(svc); record.Made != n.ID() || !isOwn(svc, &n.lb.Value, n.listeners.Value) {
		desired.Want.Ownership = driver.WithoutOwner(desired.Want.Ownership)
	}
}

// tagsToRemove returns the tags that were applied and are no longer asked for; on an existing load balancer, only those that are ours.
func (n nlb) tagsToRemove(in driver.Inputs, record driver.Record) ([]string, error) {
	removed := annotation.NotIn(in.Applied.TagKeys, record.TagKeys)
	if !n.Reused() || len(removed) == 0 {
		return removed, nil
	}
	return n.shared.TagsNotAskedFor(in.Service, n.ID(), removed)
}

// isRestored reports whether the load balancer is back after a deletion that was withdrawn, so that what the deletion switched off is to be
// switched on again.
func (n nlb) isRestored(in driver.Inputs, desired *model.Model) bool {
	reclaimed := in.Reclaimed
	if !n.Group.IsZero() && n.shared.Of(n.Group.Mark()).Unprotected == n.ID() {
		reclaimed = n.ID() // a removal by another Service of the group was begun
	}
	return n.ID() != "" && n.ID() == reclaimed && !n.Reused() && desired.Want.DeleteProtection == nil
}

// keepOthers leaves out of what is wanted, and of the Record, what others decide on: the owner of an existing load balancer, and other
// Services of a group.
func (n nlb) keepOthers(
	in driver.Inputs, shared *sharing.Shared, desired *model.Model, record *driver.Record,
) ([]problem.Problem, error) {
	tags, err := n.keepOwnersTags(desired, record, in.Applied)
	if err != nil {
		return nil, err
	}
	spared, err := n.leaveOutOfPlan(in, shared, desired, record)
	return append(tags, spared...), err
}

// keepOwnersTags leaves out of what is wanted, and of the Record, tags that are the owner's of an existing load balancer.
func (n nlb) keepOwnersTags(desired *model.Model, record *driver.Record, applied driver.Record) ([]problem.Problem, error) {
	if !n.Reused() || len(desired.Want.Tags)+len(record.TagKeys) == 0 {
		return nil, nil
	}
	var problems []problem.Problem
	var err error
	desired.Want.Tags, problems, err = driver.KeepOwnersTags(n.ID(), n.lb.Value.Tags, desired.Want.Tags, desired.Override, n.services, record, applied)
	return problems, err
}

// isLocked reports whether the cloud refuses changes of the load balancer, for example because of an unpaid bill.
func (n nlb) isLocked() bool {
	return n.Presence.Present() && (len(n.lb.Value.Locks) > 0 || n.lb.Value.Status == alicloud.NLBInactive)
}

// withoutUnread leaves out the steps that wait for parts that could not be read, those that need to know the security group of the source
// ranges, as without it nobody knows which ones the load balancer is to join and to leave, and those by which a listener leaves its group
// for one that has to have servers. On an existing load balancer that the Service may not be allowed to use, it gets no new port.
func (n nlb) withoutUnread(steps []model.Step) []model.Step {
	return slices.DeleteFunc(slices.Clone(steps), func(s model.Step) bool {
		if s.Op == model.OpCreateListener && n.Reused() && n.unread[model.PartLoadBalancer] != nil {
			return true
		}
		needsAccess := s.Op == model.OpLeave || slices.Contains(s.Needs, model.TargetAccess)
		if (s.Part() == model.PartCertificates || s.Op == model.OpDeleteGroup) && n.unread[model.PartListeners] != nil {
			return true
		}
		inDoubt := n.unread[s.Part()] != nil && !(s.GoesByLastRead() && driver.IsUnread(n.unread[s.Part()]))
		return inDoubt || needsAccess && n.unread[model.PartAccess] != nil || s.Awaits && n.unread[model.PartGroups] != nil
	})
}

// withoutUsed leaves out the deletion of server groups while the Service still leaves an NLB: listeners there use the groups of former
// ports, too, and stay until clients know the new address. A refusal would fail the pass, after which the other NLB is left.
func (n nlb) withoutUsed(svc *corev1.Service, steps []model.Step) []model.Step {
	if len(n.LeavingOf(svc)) == 0 {
		return steps
	}
	return slices.DeleteFunc(steps, func(s model.Step) bool { return s.Op == model.OpDeleteGroup })
}

// plan leads from what is known of an NLB to what is wanted.
type plan struct {
	model.Plan
	nlb nlb
	// desired is nil for a removal.
	desired *model.Model
}

var _ driver.Plan = plan{}

// Steps implements driver.Plan.
func (p plan) Steps() []driver.Step {
	var steps []driver.Step
	for i := range p.Plan.Steps {
		step := &p.Plan.Steps[i]
		steps = append(steps, driver.Step{Op: string(step.Op), Target: step.Target, Before: step.Before, After: step.After, Text: step.String()})
	}
	return steps
}

// Deploy implements driver.Plan.
func (p plan) Deploy(ctx context.Context, svc *corev1.Service, create driver.Create) driver.Deployment {
	n := p.nlb
	n.desired = p.desired
	failures := errors.Join(n.failures...)
	if !p.Has(model.OpCreateLoadBalancer) {
		n.memory.Creations.Leave(svc.UID)
	}
	n.failures = nil
	if p.Empty() {
		n.shared.WakeOnConflict(n.Group, svc, n.ID(), p.Problems)
		after, wait := p.rereadAfter(n, svc)
		return driver.Deployment{Balancer: after, Problems: p.Problems, Registered: after.registeredNow(), Wait: wait, Err: failures}
	}
	applier := &deploy.Applier{
		API: n.api, Model: n.wholeModel(), Busy: n.isBusy, Memory: &n.memory, Refused: n.refused, Held: p.heldWork(svc),
		MostServers: n.mostServers(svc),
		Create:      create,
		Turn: func(create func() error) error {
			who := refusal.Creator{UID: svc.UID, Name: mark.ServiceName(svc)}
			return n.memory.Creations.Create(who, n.config.Quotas.Limit(Product.BalancerQuota).Value, create)
		},
	}
	err := applier.Run(ctx, p.Plan)
	if applier.NotCreated != nil {
		delete(applier.Doubts, model.PartLoadBalancer) // there is none, for sure
	}
	n, wait := p.rereadAfter(n.afterPlan(svc, applier), svc)
	if applier.Lost != "" {
		err = n.missing.Unproven(applier.Lost)
	}
	n.noteInGroup(svc, p.Plan, applier.Deleted)
	if applier.Full && n.learnFull(svc) {
		err = errors.Join(err, &problem.WaitError{Reason: "the NLB takes fewer servers than was known", For: soonPoll})
	}
	goesBack, err := n.noteCreation(svc, p.Plan, applier.NotCreated, err)
	done := driver.Deployment{
		Balancer: n, Writes: applier.Writes, Progress: applier.Progress, Uncertain: applier.Uncertain, RefusedBackend: applier.RefusedServer,
		Interrupted: applier.Interrupted, Lost: applier.Lost, Shared: p.sharedGroups(), Suspected: n.suspectedInstances(applier.Exhausted),
		GoesBack: goesBack, Registered: n.registeredNow(),
		Problems: append(slices.Clone(p.Problems), applier.Problems...), Wait: wait, Err: errors.Join(err, failures),
	}
	if applier.Waits && done.Wait == 0 {
		done.Wait = soonPoll
	}
	return done
}

// heldWork returns what says which work waits because its jobs failed: none in a removal, which has nothing else to do.
func (p plan) heldWork(svc *corev1.Service) func(deploy.Work) error {
	if p.desired == nil {
		return func(deploy.Work) error { return nil }
	}
	return func(work deploy.Work) error { return p.nlb.memory.Held(svc.UID, work) }
}

// rereadAfter returns what is known of the NLB after the plan, and how long until the next pass, 0 for none: see [nlb.rereadUnsettled]. A
// removal waits by itself.
func (p plan) rereadAfter(n nlb, svc *corev1.Service) (nlb, time.Duration) {
	wait := n.waitTime()
	if p.desired == nil {
		return n, wait
	}
	n, soon := n.rereadUnsettled(svc, p.Leaving)
	if wait == 0 || soon > 0 && soon < wait {
		wait = soon
	}
	return n, wait
}

// deployment is what came of a plan, as far as it changes what is known of an NLB.
type deployment struct {
	// model is the NLB afterwards.
	model *model.Model
	// doubts are the parts that a failed call may or may not have changed, with the reason.
	doubts map[model.Part]string
	// jobs are those that were started.
	jobs []deploy.Started
	// deleted says that the deletion of the load balancer was accepted.
	deleted bool
	// lost is the id of a load balancer that a call said does not exist.
	lost string
	// refused are the targets that the cloud refuses to create.
	refused map[string]bool
}

// afterPlan returns the NLB after a plan, and waits for the jobs that it started.
func (n nlb) afterPlan(svc *corev1.Service, applier *deploy.Applier) nlb {
	for _, started := range applier.Jobs {
		n.awaits.awaitJob(started.Job, mark.ServiceName(svc))
	}
	if applier.Deleted {
		n.missing.Forget(n.absenceOf(svc)) // it proves nothing any more
	}
	known := n.afterDeployment(deployment{
		model: applier.Model, doubts: applier.Doubts, jobs: applier.Jobs, deleted: applier.Deleted, lost: applier.Lost, refused: applier.Refused,
	})
	if applier.Created {
		known = n.awaitCreation(svc, known)
	}
	return n.withKnown(known)
}

// waitTime is how long until what is under way is looked after again, 0 for nothing: the end of a job wakes the Service before.
func (n nlb) waitTime() time.Duration {
	switch {
	case len(n.jobs) == 0:
		return 0
	case n.awaits.wake == nil:
		return soonPoll
	}
	return waits.Job
}

func (n nlb) registeredNow() func(address string) bool {
	return func(address string) bool { return model.Registered(address, n.desired, n.wholeModel(), n.busyGroup) }
}

// sharedGroups returns the ids of groups of others whose servers the plan changes.
func (p plan) sharedGroups() []string {
	var ids []string
	for i := range p.Plan.Steps {
		switch step := &p.Plan.Steps[i]; step.Op {
		case model.OpAddServers, model.OpUpdateServers, model.OpRemoveServers:
			if p.nlb.Reused() && step.Group.ID != "" {
				ids = append(ids, step.Group.ID)
			}
		}
	}
	return ids
}

// recordFor returns what will have been applied to a Service, which may share the NLB.
func (n nlb) recordFor(in driver.Inputs, shared *sharing.Shared) driver.Record {
	record := recordOf(in.Applied.LoadBalancerID, in.Service, in.Params, n.Reused())
	if shared != nil {
		record = recordInGroup(in.Applied.LoadBalancerID, in.Params, shared.Leads)
		if n.access.Value != nil {
			record.Annotations = append(record.Annotations, driver.RecordedSourceRanges)
		}
	}
	return record.Keeping(in.Applied, in.Params)
}

// comparedModel returns the NLB as it is. While the Service leaves another one, the security group of its source ranges is in use there.
func (n nlb) comparedModel(desired *model.Model) *model.Model {
	actual := n.wholeModel()
	if desired.Access == nil && len(n.Leaving) > 0 {
		actual.Access = nil
	}
	return actual
}
