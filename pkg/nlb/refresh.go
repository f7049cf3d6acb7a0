package nlb

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/model"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/observe"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// refreshed is what [nlb.Refresh] finds, part by part.
type refreshed struct {
	nlb observed
	// record is what was applied to the NLB, nil where the NLB could not be read.
	record *driver.Record
	// listed are the Service's own server groups as they were read together with those of all Services, nil where they were not.
	listed []alicloud.NLBGroup
	// unread are the parts that could not be read. Their last values stand; a part without one is an error.
	unread map[model.Part]error
}

// Refresh implements driver.Balancer.
func (n nlb) Refresh(ctx context.Context, of driver.Request) (driver.Refreshed, error) {
	if of.Edited {
		n.memory.TryAgain(n.ID())
	}
	settled, failures := n.settleJobs(of.Service, n.observed)
	known, compared := n.compareWhenDue(ctx, of, settled.begunWith(of.Service))
	_, grouped := n.shared.Wanted(of.Service, of.Params, known.Group)
	together := !grouped && known.Presence.Unknown() && n.preloads.Has(mark.DefaultName(of.Service.UID))
	found, err := n.refreshParts(ctx, of, known)
	unread := errors.Join(slices.Collect(maps.Values(found.unread))...)
	if err == nil && !found.nlb.Presence.Present() && unread != nil {
		err = unread // nothing is created while anything is unknown
	}
	after := n.withKnown(found.nlb)
	after.unread, after.failures = found.unread, failures
	result := driver.Refreshed{
		Balancer: after, Applied: found.record, Whole: found.record != nil && (compared || !known.isTrusted() && of.DriftDue) && unread == nil,
		Some:     compared || !known.isTrusted(),
		Together: together, Unread: unread,
	}
	if !known.Presence.Gone() {
		result.Vanished = found.nlb.Presence.Vanished()
	}
	return result, err
}

// begunWith returns what is known when a process sees a Service for the first time: what the Service itself says.
func (o observed) begunWith(svc *corev1.Service) observed {
	if o.Presence.IsZero() && o.Leaving == nil {
		record, _ := driver.RecordOn(svc)
		o.Leaving, o.leftTags, o.Showing = record.Leaving, record.Left, driver.ShownBy(svc)
	}
	return o
}

// refreshParts re-reads those parts of the NLB that are in doubt.
func (e *engine) refreshParts(ctx context.Context, of driver.Request, known observed) (refreshed, error) {
	found := refreshed{nlb: known, unread: map[model.Part]error{}}
	if err := e.refreshLoadBalancer(ctx, of, &found); err != nil {
		return found, err
	}
	if err := e.refreshListeners(ctx, of, &found); err != nil {
		return found, err
	}
	if err := e.refreshGroups(ctx, of, &found); err != nil {
		return found, err
	}
	record := loadRecord(of.Applied, of.Service, found.nlb)
	e.refreshAccess(ctx, of.Service, record, &found)
	found.record = &record
	return found, nil
}

// refreshLoadBalancer finds the NLB, without a call where all were read together a while ago.
func (e *engine) refreshLoadBalancer(ctx context.Context, of driver.Request, found *refreshed) error {
	nlb, last := &found.nlb, lastRecord(of.Applied, of.Service)
	if nlb.Presence.Gone() || nlb.lb.Trusted() {
		return nil
	}
	_, grouped := e.shared.Wanted(of.Service, of.Params, nlb.Group)
	if pre, ok := e.preloads.Take(mark.DefaultName(of.Service.UID)); ok && nlb.Presence.Unknown() && !grouped &&
		leavesGroup(of.Service, *nlb) == nil {
		*nlb, found.listed = nlb.afterPreload(of, last, e.shared.FoundAt(of.Service, &pre.lb, false), pre), pre.groups
	} else {
		at, err := e.locateNLB(ctx, of, *nlb)
		if nlb.askedMissing = at.AskedMissing; err != nil {
			if !at.Presence.IsZero() {
				nlb.Presence, nlb.Group, nlb.From = at.Presence, at.Group, at.From
				*nlb = nlb.leavingFor(last, at.Leaves)
			} else if nlb.standsDespite(of.Params, err) {
				found.unread[model.PartLoadBalancer] = err
				return nil
			}
			return err
		}
		*nlb = nlb.afterMove(of.Service, last, at)
	}
	if nlb.Presence.Present() && nlb.lb.Value.Status == alicloud.NLBProvisioning {
		*nlb = e.awaitCreation(of.Service, *nlb)
	}
	return nil
}

// standsDespite reports whether what is known of the NLB stands although it cannot be read, or the Service may not use it any more, because
// the policy has changed: what the Service has there follows its endpoints. Otherwise its dead servers would take traffic for as long as
// that lasts.
func (o observed) standsDespite(params annotation.Params, err error) bool {
	if !o.Presence.Present() || !o.listeners.Known() || !o.groups.Known() {
		return false
	}
	refused, ok := errors.AsType[*problem.ConfigError](err)
	asked := params.Get(annotation.LoadBalancerID)
	return driver.IsUnread(err) ||
		ok && refused.Event == problem.ReasonLoadBalancerNotReusable && o.Presence.Reused() && (asked == "" || asked == o.nlbID())
}

// refreshListeners reads the listeners, with their additional certificates where there may be any: those take a call for each TCPSSL
// listener, and are a part of their own. Where that fails, those of the last read stand.
func (e *engine) refreshListeners(ctx context.Context, of driver.Request, found *refreshed) error {
	nlb := &found.nlb
	if !nlb.Presence.Present() || nlb.listeners.Trusted() {
		return nil
	}
	listeners, err := observe.Listeners(ctx, e.api, nlb.nlbID())
	if err != nil {
		return found.keepPart(model.PartListeners, nlb.listeners.Known(), err)
	}
	if mayHaveCertificates(of) {
		keepCertificates(listeners, nlb.listeners.Value)
		err = observe.Certificates(ctx, e.api, listeners)
	}
	if nlb.listeners.Set(listeners); err != nil {
		found.unread[model.PartCertificates] = err
		nlb.listeners.Invalidate("additional certificates could not be read")
	}
	return nil
}

// keepCertificates takes over the additional certificates of the last read.
func keepCertificates(listeners, before []model.Listener) {
	for i := range listeners {
		if at := slices.IndexFunc(before, func(l model.Listener) bool { return l.ID == listeners[i].ID }); at >= 0 {
			listeners[i].Certificates = before[at].Certificates
		}
	}
}

// refreshGroups reads the server groups. Where that fails, those of the last read stand. A Service that nothing was ever created for has
// none: its finalizer is written before them.
func (e *engine) refreshGroups(ctx context.Context, of driver.Request, found *refreshed) (err error) {
	if found.nlb.groups.Trusted() {
		return nil
	}
	if !of.Adopted && !found.nlb.groups.Known() && found.nlb.Presence.NeverCreated() {
		found.nlb.groups.Set(nil)
		return nil
	}
	if found.nlb, err = e.readGroups(ctx, of.Service, of.Params, found.nlb, found.listed); err != nil {
		return found.keepPart(model.PartGroups, found.nlb.groups.Known(), err)
	}
	if found.nlb.strays != nil {
		found.unread[partElsewhere] = found.nlb.strays
	}
	return nil
}

// partElsewhere is what uses the server groups of a Service elsewhere. No step of its load balancer depends on it.
const partElsewhere model.Part = "listeners elsewhere"

// keepPart notes that a part could not be read and that its last value stands. It returns the error where there is none.
func (r *refreshed) keepPart(part model.Part, known bool, err error) error {
	if !known {
		return err
	}
	r.unread[part] = err
	return nil
}

// readGroups returns what is known after the server groups were read, and the Service's listeners where those serve. own are the groups of
// its own as they were read before, nil where they were not. With an error, what is missing is noted.
func (e *engine) readGroups(
	ctx context.Context, svc *corev1.Service, params annotation.Params, known observed, own []alicloud.NLBGroup,
) (observed, error) {
	if own == nil {
		var err error
		if own, err = observe.OwnGroups(ctx, e.api, mark.DefaultName(svc.UID)); err != nil {
			return known, err
		}
	}
	groups, missing, err := observe.Groups(ctx, e.api, svc, e.ownerOf(svc, known), own, known.namedGroups(svc, params),
		e.knownGroups(svc, known))
	if err != nil {
		return known, err
	}
	if known.groupsMissing, err = e.missing.Confirm(known.groupsMissing, len(missing) > 0,
		fmt.Sprintf("server groups %v not found", missing)); err != nil {
		return known, err
	}
	known.deletingGroups = nil
	for i := range own {
		if own[i].Status == alicloud.NLBGroupDeleting {
			known.deletingGroups = append(known.deletingGroups, own[i].ID)
		}
	}
	after := known
	after.groups.Set(groups)
	after.joinedGroups = params.Get(annotation.VGroupPort)
	after, after.strays = e.withStrays(ctx, svc, after)
	return after, nil
}

// ownerOf is whom the marks of a Service name.
func (e *engine) ownerOf(svc *corev1.Service, known observed) mark.Owner {
	return mark.OwnerOf(svc, known.clusterID(e.config.ClusterID))
}

// knownGroups are the ids of groups that are there unless they are gone: those of the Service, those with servers of it, and those that its
// listeners use.
func (e *engine) knownGroups(svc *corev1.Service, known observed) []string {
	owner := e.ownerOf(svc, known)
	ids := sets.New[string]()
	for i := range known.groups.Value {
		group := &known.groups.Value[i]
		if !group.Foreign || slices.ContainsFunc(group.Servers, func(s alicloud.NLBServer) bool { return owner.OwnsNLB(s.Description) }) {
			ids.Insert(group.ID)
		}
	}
	if known.Presence.Present() {
		for i := range known.listeners.Value {
			listener := &known.listeners.Value[i]
			if id := model.Text(listener.ServerGroupID); id != "" && owner.OwnsNLB(model.Text(listener.Description)) {
				ids.Insert(id)
			}
		}
	}
	return sets.List(ids)
}

// refreshAccess reads the security group of the source ranges where there may be one.
func (e *engine) refreshAccess(ctx context.Context, svc *corev1.Service, record driver.Record, found *refreshed) {
	access := &found.nlb.access
	switch {
	case access.Trusted():
	case !mayHaveAccess(svc, record) && access.Value == nil:
		*access = driver.Part[*model.Access]{}
	default:
		var err error
		if found.nlb, err = e.searchAccess(ctx, svc, found.nlb); err != nil {
			found.unread[model.PartAccess] = err
		}
	}
}

// searchAccess returns what is known after the security group of the source ranges was read. A second one in the place of one that should
// be there would be joined beside it, and when the Service goes the first one would stay.
func (e *engine) searchAccess(ctx context.Context, svc *corev1.Service, known observed) (observed, error) {
	expected := svc.Labels[driver.LabelSecurityGroupID]
	if known.access.Value != nil {
		expected = known.access.Value.ID
	}
	access, others, err := observe.Access(ctx, e.api, svc, expected)
	if err != nil {
		return known, err
	}
	known.accessMissing, err = e.missing.Confirm(known.accessMissing, access == nil && expected != "",
		fmt.Sprintf("security group %s not found", expected))
	if err == nil {
		known.access.Set(access)
		known.accessBeside = others
	}
	return known, err
}

func mayHaveAccess(svc *corev1.Service, record driver.Record) bool {
	return len(annotation.SourceRangesOf(svc)) > 0 || slices.Contains(record.Annotations, driver.RecordedSourceRanges) ||
		svc.Labels[driver.LabelSecurityGroupID] != ""
}

// mayHaveCertificates reports whether the TCPSSL listeners of a Service have additional certificates, or are to have some.
func mayHaveCertificates(of driver.Request) bool {
	record, _ := driver.RecordOn(of.Service)
	return of.Params.Has(annotation.AdditionalCertIDs) || of.Applied != nil && len(of.Applied.Certificates) > 0 || len(record.Certificates) > 0
}
