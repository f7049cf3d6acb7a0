package slb

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/backend"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/sharing"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/build"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/diff"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/model"
)

// Backends implements driver.Balancer.
func (c clb) Backends(in driver.Inputs) backend.Input {
	in.Params = c.stayingParams(in.Service, in.Params)
	return c.buildInput(in).Backends()
}

// buildInput is what the wanted state depends on, but for certificates and what is to be removed.
func (c clb) buildInput(in driver.Inputs) build.Input {
	actual := c.wholeModel()
	clusterID, _ := c.markedOn(in.Service, serverOf(in))
	return build.Input{
		Service: in.Service, Params: in.Params, Config: c.config, ClusterID: clusterID, Observed: actual, Now: in.Now, Facts: in.Facts,
	}
}

// recordFor returns what will have been applied to a Service, which may share the CLB.
func (c clb) recordFor(in driver.Inputs, shared *sharing.Shared) driver.Record {
	restricted := len(annotation.SourceRangesOf(in.Service)) > 0 || c.access.Value != nil
	record := recordOf(in.Applied.LoadBalancerID, in.Params, c.Reused(), restricted)
	if shared != nil && !shared.Leads {
		record = recordInGroup(in.Applied.LoadBalancerID, in.Params, restricted)
	}
	return record.Keeping(in.Applied, in.Params)
}

// Plan implements driver.Balancer.
func (c clb) Plan(ctx context.Context, in driver.Inputs) (driver.Decision, error) {
	actual := c.wholeModel()
	in.Params = c.stayingParams(in.Service, in.Params)
	c = c.servingPorts(in.Service.Spec.Ports)
	decision := driver.Decision{Plan: plan{clb: c}}
	if c.Group.IsZero() {
		decision.Problems = reportPlacement(actual, in.Params)
	}
	shared, err := c.sharedWith(in.Service)
	if err != nil {
		return decision, err
	}
	if c.Reused() {
		id, proven := c.markedOn(in.Service, serverOf(in))
		if !proven {
			return decision, errUnproven(in.Service, c.ID())
		}
		c.marking = marking{c.ID(), id}
	}
	record := c.recordFor(in, shared)
	removable, err := c.shared.TagsNotAskedFor(in.Service, in.Applied.LoadBalancerID, annotation.NotIn(in.Applied.TagKeys, record.TagKeys))
	if err != nil {
		return decision, err
	}
	input := c.buildInput(in)
	input.Shared, input.PortRoom = shared, c.portRoom(in)
	input.Scheduler, record.Scheduler = in.Applied.Scheduler, input.DefaultScheduler()
	input.Params = revertedParams(in.Params, in.Applied, actual)
	input.RemoveTags, input.RemoveDomains = removable, annotation.NotIn(in.Applied.Domains, record.Domains)
	input.Certificates = c.readCertificates(ctx, in.Params)
	desired, problems := build.Build(input)
	tagProblems, err := c.keepOwnersTags(desired, &record, in.Applied, actual)
	if err != nil {
		return decision, err
	}
	problems = append(problems, tagProblems...)
	if instead := c.withoutUnwanted(in, desired); instead != nil {
		decision.Plan = instead
		return decision, nil
	}
	c.leaveUntagged(in.Service, desired)
	c.protectAgain(desired, in.Reclaimed)
	if actual == nil && c.access.Value != nil {
		actual = &model.Model{Access: c.access.Value}
	}
	desired.Exact, desired.InUse = c.before != nil, c.inUse()
	steps := diff.Diff(desired, actual, mark.ServiceName(in.Service), input.ClusterID)
	if c.before != nil {
		steps = steps.Repairing(diff.Diff(desired, c.before, mark.ServiceName(in.Service), input.ClusterID))
	}
	if in.Choice.Some {
		steps = steps.Balancing(in.Nodes.Serves)
	}
	decision.Problems = append(append(decision.Problems, problems...), steps.Problems...)
	record = c.Known.RecordPlaces(record)
	decision.Applied = &record
	decision.Problems = append(decision.Problems, c.Stays.Problems()...)
	if !in.Invalid {
		decision.Ineffective = build.Ineffective(in.Params, desired)
	}
	steps = steps.WithoutSteps(c.unread, driver.IsUnread)
	if c.Reused() && c.unread[model.PartLoadBalancer] != nil {
		steps = steps.WithoutNewPorts()
	}
	decision.Problems = append(decision.Problems, reportUnserviceable(actual)...)
	if actual != nil && actual.LoadBalancer.Locked() { // the cloud would refuse each step
		c.loadBalancer.Invalidate("it is locked")
		steps, decision.Applied = model.Plan{}, nil
	}
	decision.Plan = plan{clb: c, desired: desired, Plan: steps}
	return decision, nil
}

// reportUnserviceable says why a CLB carries no traffic although it has all that the Service asks for.
func reportUnserviceable(actual *model.Model) []problem.Problem {
	switch {
	case actual == nil:
	case actual.LoadBalancer.Locked():
		return []problem.Problem{problem.Newf(problem.ReasonLoadBalancerLocked,
			"CLB %s is locked, for example because of arrears: it carries no traffic, and takes no change until it is unlocked; see the bills of the account",
			actual.LoadBalancer.ID)}
	case actual.LoadBalancer.Stopped():
		return []problem.Problem{problem.Newf(problem.ReasonLoadBalancerStopped,
			"CLB %s was stopped, and carries no traffic until somebody starts it again in the console", actual.LoadBalancer.ID)}
	}
	return nil
}

// leaveUntagged leaves the owner tag out of what is wanted, unless the CLB has it, or has lost it since it was created: with the tag, it
// would be deleted with the Service.
func (c clb) leaveUntagged(svc *corev1.Service, desired *model.Model) {
	if !c.Group.IsZero() || c.Reused() || c.ID() == "" || driver.OwnedBy(svc, c.loadBalancer.Value.Tags) {
		return
	}
	if record, _ := driver.RecordOn(svc); record.Made != c.ID() || !isOwn(svc, &c.loadBalancer.Value, c.listeners.Value) {
		desired.LoadBalancer.Tags = driver.WithoutOwner(desired.LoadBalancer.Tags)
	}
}

// withoutUnwanted returns a plan that deletes a CLB that is not what the Service asks for, or may have: its author has changed it while
// nobody knew what came of the creation. Nothing is on it yet, and the Service does not show it. It is nil for any other one.
func (c clb) withoutUnwanted(in driver.Inputs, desired *model.Model) driver.Plan {
	lb := &c.loadBalancer.Value
	record, _ := driver.RecordOn(in.Service)
	if !c.Group.IsZero() || c.ID() == "" || c.ID() != record.Made || len(c.listeners.Value)+len(in.Service.Status.LoadBalancer.Ingress) > 0 ||
		!driver.OwnedBy(in.Service, lb.Tags) {
		return nil
	}
	steps := diff.Diff(desired, c.wholeModel(), mark.ServiceName(in.Service), "")
	if !problem.HasReason(steps.Problems, problem.ReasonImmutableAttribute) && c.Refuse(in.Params) == nil {
		return nil
	}
	return plan{clb: c, Plan: diff.Deletion(c.wholeModel()), unwanted: true}
}

// servingPorts takes note of the ports that a plan is for.
func (c clb) servingPorts(ports []corev1.ServicePort) clb {
	if !slices.Equal(ports, c.ports) {
		c.ports, c.refused = ports, nil
	}
	return c
}

// protectAgain asks for the delete protection of a new CLB where a removal that was begun has switched it off, also that by another Service
// of the group.
func (c clb) protectAgain(desired *model.Model, reclaimed string) {
	if !c.Group.IsZero() && c.shared.Of(c.Group.Mark()).Unprotected == c.ID() {
		reclaimed = c.ID()
	}
	if !c.Reused() && c.ID() != "" && c.ID() == reclaimed && desired.LoadBalancer.DeleteProtection == "" {
		desired.LoadBalancer.DeleteProtection = desired.Create.DeleteProtection
	}
}

// revertedParams returns the parameters with the values to go back to, for annotations that were applied and are gone. The attributes
// of an existing CLB whose listeners the Service does not manage are its owner's.
func revertedParams(params annotation.Params, applied driver.Record, actual *model.Model) annotation.Params {
	if actual != nil && actual.Reused && !params.OverridesListeners() {
		return params
	}
	return params.Revert(applied.Annotations)
}

// keepOwnersTags leaves out of what is wanted, and of the Record, tags that are the owner's of an existing CLB.
func (e *engine) keepOwnersTags(
	desired *model.Model, record *driver.Record, applied driver.Record, actual *model.Model,
) ([]problem.Problem, error) {
	if actual == nil || !actual.Reused || len(desired.LoadBalancer.Tags) <= 1 && len(record.TagKeys) == 0 {
		return nil, nil
	}
	isMark := func(tag alicloud.Tag) bool { return tag.Key == mark.TagReused }
	marks := slices.DeleteFunc(slices.Clone(desired.LoadBalancer.Tags), func(tag alicloud.Tag) bool { return !isMark(tag) })
	ours, problems, err := driver.KeepOwnersTags(actual.LoadBalancer.ID, actual.LoadBalancer.Tags,
		slices.DeleteFunc(slices.Clone(desired.LoadBalancer.Tags), isMark), desired.Override, e.services, record, applied)
	desired.LoadBalancer.Tags = slices.Concat(marks, ours)
	return problems, err
}
