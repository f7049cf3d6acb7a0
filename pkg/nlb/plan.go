package nlb

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/build"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/deploy"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/diff"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/model"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/backend"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// Backends implements service.Balancer.
func (n nlb) Backends(in service.Inputs) backend.Input { return n.input(in).Backends() }

// clusterID is the one in the marks: a load balancer of ours keeps its own.
func (n nlb) clusterID() string {
	if n.presence.Present() && !n.Reused() {
		if id, ok := n.lb.Value.Tag(mark.TagCluster); ok && id != "" {
			return id
		}
	}
	return n.config.ClusterID
}

func (n nlb) input(in service.Inputs) build.Input {
	return build.Input{
		Service: in.Service, Params: in.Params, Config: n.config, ClusterID: n.clusterID(), Observed: n.model(), Nodes: in.Nodes, Slices: in.Slices,
		Waiting: in.Waiting, Held: in.Held, Interfaces: in.Interfaces, InterfacesUnread: in.InterfacesUnread, Blocks: in.Blocks, Now: in.Now, Choice: in.Choice,
	}
}

// Plan implements service.Balancer.
func (n nlb) Plan(_ context.Context, in service.Inputs) (service.Goal, error) {
	goal := service.Goal{Plan: plan{nlb: n}}
	if n.refusal != nil {
		goal.Problems = append(goal.Problems, problem.Newf(n.refusal.Event, "%v; the Service stays on NLB %s", n.refusal, n.ID()))
	}
	switch lb := &n.lb.Value; {
	case n.locked():
		goal.Problems = append(goal.Problems, problem.Newf(problem.ReasonFeatureNotSupported, "NLB %s is locked (%s): nothing is changed until the lock is gone", lb.ID, strings.Join(lb.Locks, ", ")))
		return goal, nil
	case n.presence.Present() && lb.Status == alicloud.NLBCreateFailed && !n.Reused():
		goal.Plan = plan{nlb: n, Plan: diff.Deletion(n.model())}
		return goal, nil
	}
	record := recordOf(in.Applied.LoadBalancerID, in.Service, in.Params, n.Reused())
	record = record.Keeping(in.Applied, in.Params)
	input := n.input(in)
	if !n.Reused() || in.Params.OverridesListeners() {
		input.Params = in.Params.Revert(in.Applied.Annotations)
	}
	var err error
	if input.RemoveTags, err = n.tagsToRemove(in, record); err != nil {
		return goal, err
	}
	input.LeaveGroups = notIn(in.Applied.SecurityGroups, record.SecurityGroups)
	input.RemoveCertificates = notIn(in.Applied.Certificates, record.Certificates)
	desired, problems := build.Build(input)
	tagProblems, err := n.keepOwnersTags(desired, &record, in.Applied)
	if err != nil {
		return goal, err
	}
	problems = append(problems, tagProblems...)
	if n.restored(in, desired) {
		desired.Want.DeleteProtection = &desired.LoadBalancer.DeletionProtection
	}
	steps := diff.Diff(desired, n.model(), mark.OwnerOf(in.Service, n.clusterID()))
	steps.Steps = n.withoutUnread(steps.Steps)
	goal.Problems = append(goal.Problems, append(problems, steps.Problems...)...)
	n.ports = in.Service.Spec.Ports
	goal.Applied, goal.Plan = &record, plan{nlb: n, Plan: steps, desired: desired}
	return goal, nil
}

// tagsToRemove returns the tags that were applied and are no longer asked for; on an existing load balancer, only those that are ours.
func (n nlb) tagsToRemove(in service.Inputs, record service.Record) ([]string, error) {
	removed := notIn(in.Applied.TagKeys, record.TagKeys)
	if !n.Reused() || len(removed) == 0 {
		return removed, nil
	}
	return n.removableTags(in.Service, n.ID(), removed)
}

// restored reports whether the load balancer is back after a deletion that was withdrawn, so that what the deletion switched off is to be
// switched on again.
func (n nlb) restored(in service.Inputs, desired *model.Model) bool {
	return n.ID() != "" && n.ID() == in.Reclaimed && !n.Reused() && desired.Want.DeleteProtection == nil
}

// keepOwnersTags leaves out of what is wanted, and of the Record, tags that are the owner's of an existing load balancer.
func (n nlb) keepOwnersTags(desired *model.Model, record *service.Record, applied service.Record) ([]problem.Problem, error) {
	if !n.Reused() || len(desired.Want.Tags)+len(record.TagKeys) == 0 {
		return nil, nil
	}
	owners, err := service.OwnersTagsOf(n.ID(), n.lb.Value.Tags, desired.Override, n.services, applied)
	if err != nil {
		return nil, err
	}
	record.TagKeys = slices.DeleteFunc(slices.Clone(record.TagKeys), owners.Has)
	var problems []problem.Problem
	desired.Want.Tags, problems = owners.Ours(desired.Want.Tags)
	return problems, nil
}

// locked reports whether the cloud refuses changes of the load balancer, for example because of an unpaid bill.
func (n nlb) locked() bool {
	return n.presence.Present() && (len(n.lb.Value.Locks) > 0 || n.lb.Value.Status == alicloud.NLBInactive)
}

// withoutUnread leaves out the steps on parts that could not be read.
func (n nlb) withoutUnread(steps []model.Step) []model.Step {
	var left []model.Step
	for i := range steps {
		if n.unread[steps[i].Part()] == nil {
			left = append(left, steps[i])
		}
	}
	return left
}

// plan leads from what is known of an NLB to what is wanted.
type plan struct {
	model.Plan
	nlb nlb
	// desired is nil for a removal.
	desired *model.Model
}

var _ service.Plan = plan{}

// Steps implements service.Plan.
func (p plan) Steps() []service.Step {
	var steps []service.Step
	for i := range p.Plan.Steps {
		step := &p.Plan.Steps[i]
		steps = append(steps, service.Step{Op: string(step.Op), Target: step.Target, Before: step.Before, After: step.After, Text: step.String()})
	}
	return steps
}

// Deploy implements service.Plan.
func (p plan) Deploy(ctx context.Context, svc *corev1.Service) service.Deployment {
	n := p.nlb
	n.desired = p.desired
	failures := errors.Join(n.failures...)
	n.failures = nil
	if p.Empty() {
		return service.Deployment{Balancer: n, Registered: n.registered(), Wait: n.wait(), Err: failures}
	}
	applier := &deploy.Applier{
		API: n.api, Model: n.model(), Busy: n.busy, Memory: &n.memory,
		Token: func(lb alicloud.NLB) string { return token(svc.UID, n.presence.ID(), lb) },
	}
	err := applier.Run(ctx, p.Plan)
	n.after(svc, p.Plan.Steps, applier)
	if applier.Lost != "" {
		err = n.missing.Unproven(applier.Lost)
	}
	done := service.Deployment{
		Balancer: n, Writes: applier.Writes, Progress: applier.Progress, Uncertain: applier.Uncertain, RefusedBackend: applier.RefusedServer,
		Interrupted: applier.Interrupted, Lost: applier.Lost, Shared: p.shared(), Registered: n.registered(), Wait: n.wait(), Err: errors.Join(err, failures),
	}
	if applier.Waits && done.Wait == 0 {
		done.Wait = soonPoll
	}
	return done
}

// after takes note of what came of a plan.
func (n *nlb) after(svc *corev1.Service, steps []model.Step, applier *deploy.Applier) {
	n.take(applier.Model)
	if slices.ContainsFunc(steps, func(s model.Step) bool { return s.Of != "" }) {
		n.left.Invalidate("its deletion was asked for")
	}
	for part, reason := range applier.Doubts {
		n.invalidatePart(part, reason)
		if part == model.PartLoadBalancer && applier.Model.LoadBalancer.ID == "" {
			n.presence = n.presence.AfterUnansweredCreation()
		}
	}
	for _, started := range applier.Jobs {
		n.awaits.job(started.Job, mark.ServiceName(svc))
		for _, target := range started.Targets {
			n.begin(target, pending{id: string(started.Job), step: started.Step, part: started.Part, since: time.Now()})
		}
	}
	if applier.Deleted {
		n.missing.Forget(svc.UID) // it proves nothing any more
		p := n.jobs[model.TargetLoadBalancer]
		p.step = string(model.OpDeleteLoadBalancer)
		n.begin(model.TargetLoadBalancer, p)
	}
	if applier.Created {
		n.awaitCreation(svc)
	}
	if applier.Lost != "" {
		n.presence = n.presence.AfterLoss(applier.Lost)
	}
}

// wait is how long until what is under way is looked after again, 0 for nothing: the end of a job wakes the Service before.
func (n *nlb) wait() time.Duration {
	switch {
	case len(n.jobs) == 0:
		return 0
	case n.awaits.wake == nil:
		return soonPoll
	}
	return jobLimit
}

func (n *nlb) registered() func(address string) bool {
	known := *n
	return func(address string) bool {
		return model.Registered(address, known.desired, known.model(), known.busyGroup)
	}
}

// shared returns the ids of groups of others whose servers the plan changes.
func (p plan) shared() []string {
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

// token is the client token of the creation of a load balancer: the same for the same attempt, also of another process. With the token
// of the one before, the cloud would answer with that, deleted one.
func token(uid types.UID, lastID string, lb alicloud.NLB) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %s %+v", uid, lastID, lb))
	return hex.EncodeToString(sum[:])
}
