package nlb

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/model"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/observe"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/presence"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// settle takes note of the jobs that have ended. What a failed job was about is read again, and the failure is the pass's, too.
func (n *nlb) settle(svc *corev1.Service) {
	n.failures = nil
	for _, target := range slices.Sorted(maps.Keys(n.jobs)) {
		if p, ok := n.jobs[target]; ok { // a job with two targets is settled with the first
			n.settleOne(svc, p)
		}
	}
}

// settleOne takes note of one thing that was under way. What nobody waits for any more, or what takes too long, may have ended either
// way: it is read again.
func (n *nlb) settleOne(svc *corev1.Service, p pending) {
	item, ok := n.awaits.of(p.id)
	switch {
	case ok && item.ended && item.status == alicloud.JobSucceeded:
		n.finish(p.id)
		n.succeeded(svc, p, item.found)
		return
	case ok && item.ended && item.status == alicloud.JobFailed:
		n.failures = append(n.failures, fmt.Errorf("%s failed; the cloud gives no reason (job %s)", p.step, p.id))
	case ok && !item.ended && time.Since(p.since) < p.limit():
		return
	case ok && !item.ended:
		n.awaits.drop(p.id)
		n.failures = append(n.failures, fmt.Errorf("%s: not done after %s (%s)", p.step, p.limit(), p.id))
	}
	n.finish(p.id)
	n.invalidatePart(p.part, "a job ended in a way that is not known")
}

// limit is how long it may take before it counts as failed.
func (p *pending) limit() time.Duration {
	if p.loadBalancer {
		return loadBalancerLimit
	}
	return jobLimit
}

// succeeded takes note of the end of something that went as it should.
func (n *nlb) succeeded(svc *corev1.Service, p pending, found *alicloud.NLB) {
	switch {
	case p.loadBalancer && found == nil:
		n.presence = n.presence.AfterDeletion() // one answer without it: the pass searches for it
		n.lb.Invalidate("it was deleted")
	case p.loadBalancer:
		if n.lb.Value.ID == found.ID {
			n.lb.Set(*found)
		}
	case p.step == string(model.OpDeleteLoadBalancer):
		n.awaitDeletion(svc, p.part)
	}
}

// awaitCreation waits for a load balancer that is provisioned.
func (n *nlb) awaitCreation(svc *corev1.Service) {
	id := n.lb.Value.ID
	n.awaits.loadBalancer(id, mark.ServiceName(svc), func(lb *alicloud.NLB) bool { return lb != nil && lb.Status != alicloud.NLBProvisioning })
	n.begin(model.TargetLoadBalancer, pending{id: id, loadBalancer: true, step: "creation of " + id, part: model.PartLoadBalancer, since: time.Now()})
}

// awaitDeletion waits until a load balancer is gone: it is some seconds after the job.
func (n *nlb) awaitDeletion(svc *corev1.Service, part model.Part) {
	id := n.lb.Value.ID
	n.awaits.loadBalancer(id, mark.ServiceName(svc), func(lb *alicloud.NLB) bool { return lb == nil })
	n.begin(model.TargetLoadBalancer, pending{id: id, loadBalancer: true, step: "deletion of " + id, part: part, since: time.Now()})
}

// Refresh implements service.Balancer.
func (n nlb) Refresh(ctx context.Context, of service.Request) (service.Refreshed, error) {
	n.settle(of.Service)
	n.unread, n.listed = map[model.Part]error{}, nil
	n.doubtStale(of)
	result := service.Refreshed{Balancer: n, Together: n.presence.Unknown() && n.preloads.Has(mark.DefaultName(of.Service.UID))}
	wasTrusted, wasGone := n.trusted(), n.presence.Gone()
	err := n.read(ctx, of)
	record := n.record(of.Applied, of.Service)
	if err == nil {
		err = n.noteLeftTags(of)
	}
	if err == nil {
		n.readAccess(ctx, of, record)
		result.Applied = &record
	}
	result.Balancer, result.Whole, result.Some = n, err == nil && !wasTrusted && of.DriftDue && len(n.unread) == 0, !wasTrusted
	if !wasGone {
		result.Vanished = n.presence.Vanished()
	}
	result.Unread = errors.Join(slices.Collect(maps.Values(n.unread))...)
	if err == nil && !n.presence.Present() && result.Unread != nil {
		err = result.Unread // nothing is created while anything is unknown
	}
	return result, err
}

// doubtStale casts doubt on what this pass has to read again although nothing went wrong.
func (n *nlb) doubtStale(of service.Request) {
	if of.DriftDue && len(n.jobs) == 0 {
		n.observed = n.invalidate("due for drift detection")
	}
	if joined := of.Params.Get(annotation.VGroupPort); n.presence.WasReused() && joined != n.joinedGroups && n.groups.Known() {
		n.groups.Invalidate("an annotation names other server groups")
	}
}

// read reads the load balancer, its listeners and the groups, as far as they are in doubt.
func (n *nlb) read(ctx context.Context, of service.Request) error {
	if !n.presence.Gone() && !n.lb.Trusted() {
		if err := n.readLoadBalancer(ctx, of); err != nil {
			return err
		}
	}
	if n.presence.Present() && !n.listeners.Trusted() {
		if err := n.readListeners(ctx, of); err != nil {
			return err
		}
	}
	if !n.groups.Trusted() {
		if err := n.readGroups(ctx, of.Service, of.Params); err != nil {
			return err
		}
	}
	return n.readLeft(ctx, of.Service)
}

// readLeft reads the load balancer of the Service's own that it has left.
func (n *nlb) readLeft(ctx context.Context, svc *corev1.Service) error {
	if n.leftID == "" || n.left.Trusted() {
		return nil
	}
	lb, err := n.api.GetNLB(ctx, n.leftID)
	owner := alicloud.Tag{Key: mark.TagOwner, Value: mark.DefaultName(svc.UID)}
	switch {
	case err != nil && !alicloud.IsNotFound(err):
		return fmt.Errorf("read NLB %s, which the Service has left: %w", n.leftID, err)
	case err != nil, lb.Status == alicloud.NLBDeleting, !observe.Tagged(lb.Tags, owner), n.ID() == n.leftID:
		n.leftID, n.left = "", service.Part[*alicloud.NLB]{}
		return nil //nolint:nilerr // that there is none is what was asked
	}
	n.left.Set(&lb)
	return nil
}

// readStrays reads the listeners of the Service on load balancers that it has left: those of its server groups, which may serve several.
func (n *nlb) readStrays(ctx context.Context, svc *corev1.Service, groups []model.Group) ([]model.Listener, error) {
	ids := []string{n.formerID}
	for i := range groups {
		if !groups[i].Foreign {
			ids = append(ids, groups[i].LoadBalancers...)
		}
	}
	slices.Sort(ids)
	ids = slices.DeleteFunc(slices.Compact(ids), func(id string) bool {
		return id == "" || id == n.leftID || id == n.lb.Value.ID && n.presence.Present()
	})
	owner := mark.OwnerOf(svc, n.clusterID())
	var strays []model.Listener
	for chunk := range slices.Chunk(ids, alicloud.MaxNLBQuery) {
		found, err := n.api.ListNLBListeners(ctx, chunk)
		if err != nil && !alicloud.IsNotFound(err) {
			return nil, fmt.Errorf("read the listeners of load balancers that the Service has left: %w", err)
		}
		for i := range found {
			if owner.OwnsNLB(model.Text(found[i].Description)) && found[i].Status != alicloud.NLBListenerDeleting {
				strays = append(strays, model.Listener{NLBListener: found[i]})
			}
		}
	}
	return strays, nil
}

// readLoadBalancer finds the load balancer, without a call where all were read together a while ago.
func (n *nlb) readLoadBalancer(ctx context.Context, of service.Request) error {
	if pre, ok := n.preloads.Take(mark.DefaultName(of.Service.UID)); ok && n.presence.Unknown() {
		n.takePreloaded(of, pre)
	} else if err := n.locate(ctx, of.Service, of.Params, of.Adopted); err != nil {
		return err
	}
	if n.presence.Present() && n.lb.Value.Status == alicloud.NLBProvisioning {
		n.awaitCreation(of.Service)
	}
	return nil
}

// readListeners reads the listeners, with their additional certificates where there may be any: those take a call for each TCPSSL
// listener. What was read before stays in use where it fails.
func (n *nlb) readListeners(ctx context.Context, of service.Request) error {
	certificates := of.Params.Has(annotation.AdditionalCertIDs) || of.Applied != nil && len(of.Applied.Certificates) > 0 || mayHaveCertificates(of.Service)
	listeners, err := observe.Listeners(ctx, n.api, n.ID(), certificates)
	if err == nil {
		n.listeners.Set(listeners)
		return nil
	}
	if n.unread[model.PartListeners] = err; !n.listeners.Known() {
		return err
	}
	return nil
}

func (n *nlb) readGroups(ctx context.Context, svc *corev1.Service, params annotation.Params) error {
	var joined []string
	if n.presence.WasReused() {
		ids, _ := annotation.VGroupsOf(params)
		joined = slices.Compact(slices.Sorted(maps.Values(ids)))
	}
	own, err := n.listed, error(nil)
	if n.listed = nil; own == nil {
		own, err = observe.OwnGroups(ctx, n.api, mark.DefaultName(svc.UID))
	}
	var groups []model.Group
	var missing []string
	if err == nil {
		groups, missing, err = observe.Groups(ctx, n.api, svc, mark.OwnerOf(svc, n.clusterID()), own, joined, n.knownGroups(svc))
	}
	if err == nil {
		err = n.confirmGroups(missing)
	}
	var strays []model.Listener
	if err == nil {
		strays, err = n.readStrays(ctx, svc, groups)
	}
	if err == nil {
		n.groups.Set(groups)
		n.strays = strays
		n.joinedGroups = params.Get(annotation.VGroupPort)
		return nil
	}
	if n.unread[model.PartGroups] = err; !n.groups.Known() {
		return err
	}
	return nil
}

// knownGroups are the ids of groups that are there unless they are gone: those of the Service, those with servers of it, and those that its
// listeners use.
func (n *nlb) knownGroups(svc *corev1.Service) []string {
	owner := mark.OwnerOf(svc, n.clusterID())
	known := sets.New[string]()
	for i := range n.groups.Value {
		group := &n.groups.Value[i]
		if !group.Foreign || slices.ContainsFunc(group.Servers, func(s alicloud.NLBServer) bool { return owner.OwnsNLB(s.Description) }) {
			known.Insert(group.ID)
		}
	}
	if n.presence.Present() {
		for i := range n.listeners.Value {
			if id := model.Text(n.listeners.Value[i].ServerGroupID); id != "" && owner.OwnsNLB(model.Text(n.listeners.Value[i].Description)) {
				known.Insert(id)
			}
		}
	}
	return sets.List(known)
}

// confirmGroups is an error until groups that are missing, by tag and by id, have been missing for some seconds: a second group in the place
// of one that is there would take over its listeners.
func (n *nlb) confirmGroups(missing []string) error {
	confirmed := !n.groupsMissing.IsZero() && time.Since(n.groupsMissing) >= presence.GoneOver
	if len(missing) == 0 || confirmed {
		n.groupsMissing = time.Time{}
		return nil
	}
	if n.groupsMissing.IsZero() {
		n.groupsMissing = time.Now()
	}
	return &problem.WaitError{Reason: fmt.Sprintf("server groups %v not found; waiting for a second confirmation", missing), For: presence.GoneOver}
}

// mayHaveCertificates reports whether earlier passes added certificates to listeners.
func mayHaveCertificates(svc *corev1.Service) bool {
	record, _ := service.RecordOn(svc)
	return len(record.Certificates) > 0
}

// readAccess reads the security group of the source ranges where there may be one.
func (n *nlb) readAccess(ctx context.Context, of service.Request, record service.Record) {
	if n.access.Trusted() {
		return
	}
	if !mayHaveAccess(of.Service, record) && n.access.Value == nil {
		n.access = service.Part[*model.Access]{}
		return
	}
	if err := n.searchAccess(ctx, of.Service); err != nil {
		n.unread[model.PartAccess] = err
	}
}

func (n *nlb) searchAccess(ctx context.Context, svc *corev1.Service) error {
	owner := mark.DefaultName(svc.UID)
	name, _ := mark.OwnerOf(svc, "").NLBSecurityGroup(svc.UID)
	access, err := observe.Access(ctx, n.api, owner, name)
	if err == nil {
		n.access.Set(access)
	}
	return err
}

func mayHaveAccess(svc *corev1.Service, record service.Record) bool {
	return len(annotation.SourceRangesOf(svc)) > 0 || slices.Contains(record.Annotations, service.RecordedSourceRanges) || svc.Labels[service.LabelSecurityGroupID] != ""
}
