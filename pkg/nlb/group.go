package nlb

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/build"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/model"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/groups"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/presence"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/quota"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/sharing"
)

// groupCloud is what groups need of NLBs.
type groupCloud struct{ *engine }

var _ groups.Cloud[alicloud.NLB] = groupCloud{}

// Refuse implements groups.Cloud: an NLB for several Services, or to which a Service moves, is created only where somebody has said in
// which zones.
func (c groupCloud) Refuse(params annotation.Params) error {
	if err := c.engine.Refuse(params); err != nil || params.Has(annotation.LoadBalancerID) {
		return err
	}
	if in := (build.Input{Params: params, Config: c.config}); in.NeedsZones() {
		return build.ErrNoZones(nil)
	}
	return nil
}

// View implements groups.Cloud.
func (groupCloud) View(lb *alicloud.NLB) groups.LoadBalancer {
	public := strings.EqualFold(lb.AddressType, alicloud.NLBInternet) || strings.EqualFold(lb.IPv6AddressType, alicloud.NLBInternet)
	return groups.LoadBalancer{ID: lb.ID, Name: lb.Name, Tags: lb.Tags, Public: public, SecurityGroups: lb.SecurityGroups}
}

// FindByTag implements groups.Cloud. A load balancer that is being deleted takes no Service any more.
func (c groupCloud) FindByTag(ctx context.Context, tag alicloud.Tag) ([]alicloud.NLB, error) {
	found, err := c.api.ListNLBs(ctx, alicloud.NLBQuery{Tag: &tag})
	return slices.DeleteFunc(found, func(lb alicloud.NLB) bool { return lb.Status == alicloud.NLBDeleting }), err
}

// Read implements groups.Cloud.
func (c groupCloud) Read(ctx context.Context, id string) (*alicloud.NLB, error) {
	return c.readNLB(ctx, id)
}

// Listeners implements groups.Cloud. A listener on a range of ports counts with its first one: nobody knows which of the others are in use.
func (c groupCloud) Listeners(ctx context.Context, balancers []alicloud.NLB) (map[string][]groups.Listener, error) {
	ids := make([]string, len(balancers))
	for i := range balancers {
		ids[i] = balancers[i].ID
	}
	found, err := c.listenersOf(ctx, ids)
	all := map[string][]groups.Listener{}
	for id, listeners := range found {
		for i := range listeners {
			all[id] = append(all[id], listenerOf(&listeners[i]))
		}
	}
	return all, err
}

func portOf(listener *model.Listener) sharing.Port {
	first, _ := listener.Span()
	return sharing.Port{Number: int32(first), UDP: listener.Protocol == alicloud.NLBUDP} //nolint:gosec // a port
}

// Shown implements groups.Cloud.
func (c groupCloud) Shown(ctx context.Context, svc *corev1.Service, known presence.Presence) (*alicloud.NLB, error) {
	if known.ID() != "" {
		return nil, nil
	}
	return c.shownNLB(ctx, svc, "")
}

// Claims implements groups.Cloud.
func (c groupCloud) Claims(ctx context.Context, svc *corev1.Service, lb *alicloud.NLB) (has, reused bool, err error) {
	listeners, err := c.api.ListNLBListeners(ctx, []string{lb.ID})
	if err != nil {
		return false, false, fmt.Errorf("read the listeners of NLB %s: %w", lb.ID, err)
	}
	record, _ := driver.RecordOn(svc)
	own := c.isShown(svc, lb, record)
	return own || c.wasOn(svc, lb, listeners), !own, nil
}

// Unshareable implements groups.Cloud. The security groups of an NLB act on all its listeners: a Service that is to be open to some clients
// only would be open to those of the others.
func (c groupCloud) Unshareable(
	svc *corev1.Service, params annotation.Params, group mark.Group, leader *corev1.Service, asked annotation.Params, lb *groups.LoadBalancer,
) error {
	refused := func(reason string) error {
		return &problem.ConfigError{Field: annotation.Group.Key(), Event: problem.ReasonLoadBalancerNotReusable, Reason: reason}
	}
	ids, follows := annotation.ListOf(params, annotation.SecurityGroupIDs), leader.UID != svc.UID
	switch {
	case len(annotation.SourceRangesOf(svc)) > 0:
		return refused(fmt.Sprintf("the Service restricts its clients by loadBalancerSourceRanges, and the listeners of an NLB cannot be restricted one by one; "+
			"remove the annotation %s, or the ranges", annotation.Group))
	case params.Get(annotation.IPv6AddressType) == alicloud.AddressIntranet &&
		asked.Get(annotation.IPv6AddressType) == alicloud.AddressInternet,
		params.Get(annotation.AddressType) == alicloud.AddressIntranet && asked.Get(annotation.IPv6AddressType) == alicloud.AddressInternet &&
			follows:
		return refused(fmt.Sprintf("the Service asks for a private address, and the NLB of load balancer group %s has public IPv6 addresses; choose another group", group))
	case follows && len(ids) > 0 && !sameValue(strings.Join(ids, ","), asked.Get(annotation.SecurityGroupIDs)):
		return refused(fmt.Sprintf("the Service restricts its clients by %s, and on the NLB of load balancer group %s the oldest Service decides on that, which is %s; "+
			"choose another group, or the same security groups", annotation.SecurityGroupIDs, group, mark.ServiceName(leader)))
	case follows && lb != nil && len(annotation.NotIn(ids, lb.SecurityGroups)) > 0:
		return refused(fmt.Sprintf("the Service restricts its clients by %s, and NLB %s is not in these security groups yet, although Service %s asks for them, too",
			annotation.SecurityGroupIDs, lb.ID, mark.ServiceName(leader)))
	}
	return nil
}

// Params implements groups.Cloud.
func (c groupCloud) Params(svc *corev1.Service) annotation.Params {
	params, _ := c.engine.Params(svc)
	return params
}

// TagKeys implements groups.Cloud.
func (groupCloud) TagKeys(params annotation.Params) []string {
	var keys []string
	for _, tag := range annotation.NLBTagsOf(params) {
		keys = append(keys, tag.Key)
	}
	return keys
}

// Room implements groups.Cloud.
func (c groupCloud) Room(id string) (most, stay int) {
	return groups.RoomFor(c.config.Quotas.Of(quota.ListenersPerNLB, id).Value, c.config.Quotas.Limit(quota.ServersPerNLB).Value), 0
}

// doubtGroup puts in doubt which NLB the Service is on where its group, or other Services of that, have changed.
func (e *engine) doubtGroup(of driver.Request, known observed) observed {
	if !known.Presence.Gone() && !known.lb.Trusted() {
		return known
	}
	reason := e.shared.Doubts(of.Service, of.Params, known.Known)
	on := nlb{engine: e, observed: known}
	if reason == "" && !known.Group.IsZero() && of.Params.Has(annotation.SecurityGroupIDs) && !on.hasListener(of.Service) {
		reason = "the NLB may be in other security groups by now"
	}
	if reason != "" {
		known = known.invalidateParts(map[model.Part]string{model.PartLoadBalancer: reason})
	}
	return known
}

// leavesGroup returns what a Service leaves that is in no group any more: the NLB of one, and the group, whose mark alone is known after a
// restart.
func leavesGroup(svc *corev1.Service, known observed) []string {
	record, _ := driver.RecordOn(svc)
	switch {
	case !known.Group.IsZero():
		return withoutEmpty(known.Presence.ID(), known.Group.Mark())
	case !known.Presence.Present() && known.From != "" && slices.ContainsFunc(known.Leaving, mark.IsGroup):
		return append([]string{known.From}, known.Leaving...)
	case known.Presence.IsZero() && record.Group != "":
		return withoutEmpty(record.LoadBalancerID, record.Group)
	case known.Presence.IsZero() && slices.ContainsFunc(record.Leaving, mark.IsGroup): // a process has ended in the middle of the move
		shown := driver.ShownBy(svc)
		return append(withoutEmpty(shown), slices.DeleteFunc(slices.Clone(record.Leaving), func(place string) bool { return place == shown })...)
	}
	return nil
}

func withoutEmpty(texts ...string) []string {
	return slices.DeleteFunc(texts, func(text string) bool { return text == "" })
}

// leaveGroup locates the NLB of a Service that is in no group any more. While it can get none of its own, it stays on that of the group.
func (e *engine) leaveGroup(ctx context.Context, of driver.Request, known observed, leaves []string) (location, error) {
	svc := of.Service
	leaves = known.Known.ShownFirst(leaves)
	own := known
	own.Presence, own.Group = presence.Presence{}, mark.Group{}
	if known.Group.IsZero() {
		own.Presence = known.Presence
	}
	if of.Params.Has(annotation.LoadBalancerID) {
		found, err := e.locateAsked(ctx, svc, own, "", of.Params.Get(annotation.LoadBalancerID), of.Adopted)
		found.Leaves = append(leaves, found.Leaves...)
		return e.orStays(ctx, of, found, err)
	}
	lb, _, err := e.ownedBy(ctx, svc, "")
	if err != nil || lb != nil {
		found := e.shared.FoundAt(svc, lb, false)
		found.Leaves = leaves
		return found, err
	}
	if stays, failure := e.stayBefore(ctx, svc, leaves[0]); failure != nil || stays.Presence.Present() {
		return stays, failure
	}
	record, _ := driver.RecordOn(svc)
	lastID := own.Presence.ID() // one of its own whose creation failed, so that the next one has another client token
	found, err := e.decideAbsence(ctx, svc, own.Presence, lastID, lastID != "" || own.Presence.MaybeCreated() || of.Adopted && len(record.Leaving) > 0)
	found.Leaves, found.From = leaves, leaves[0]
	return found, err
}

// current is what is known of the NLB, for what it has in common with other products.
func (n nlb) current() groups.Current[alicloud.NLB] {
	return groups.CurrentOf(n.Known, &n.lb.Value, n.former)
}

// sharedWith returns what it means for the Service that it shares its NLB, nil where it does not.
func (n *nlb) sharedWith(svc *corev1.Service) (*sharing.Shared, error) {
	shared, err := n.shared.Shared(svc, n.current(), n.hasListener(svc))
	n.taken = shared.TakesPorts()
	n.noteServers(svc)
	return shared, err
}

// hasListener reports whether the Service has a listener on its NLB.
func (n *nlb) hasListener(svc *corev1.Service) bool { return len(n.servedPorts(svc)) > 0 }

// servedPorts are those on which the Service has listeners on its NLB.
func (n *nlb) servedPorts(svc *corev1.Service) []sharing.Port {
	if !n.Presence.Present() {
		return nil
	}
	return groups.PortsOf(n.ownerOf(svc, n.observed), n.allListeners)
}

// hasOthersListener reports whether somebody else has a listener on the NLB.
func (n *nlb) hasOthersListener(svc *corev1.Service) bool {
	return groups.HasOthers(n.ownerOf(svc, n.observed), n.allListeners)
}

func (n *nlb) allListeners(yield func(groups.Listener) bool) {
	for i := range n.listeners.Value {
		if !yield(listenerOf(&n.listeners.Value[i])) {
			return
		}
	}
}

func listenerOf(l *model.Listener) groups.Listener {
	listener := groups.Listener{Port: portOf(l)}
	listener.Service, listener.ClusterID, _ = mark.ParseNLB(model.Text(l.Description))
	return listener
}

// noteInGroup notes what a plan has done to an NLB of a group.
func (n *nlb) noteInGroup(svc *corev1.Service, done model.Plan, deleted bool) {
	if n.Group.IsZero() {
		return
	}
	n.noteServers(svc)
	admits := ""
	if done.Has(model.OpJoin) {
		admits = fmt.Sprint("security groups ", n.lb.Value.SecurityGroups)
	}
	n.shared.Deployed(svc, n.current(), groups.Done{
		Removes:   done.Has(model.OpDeleteLoadBalancer) && done.Has(model.OpSetProtection),
		Protected: n.lb.Value.DeletionProtection, Deleted: deleted,
		Ports: n.servedPorts(svc), Freed: freedBy(done), Admits: admits,
		Listens: done.Has(model.OpCreateListener) || problem.HasReason(done.Problems, problem.ReasonListenerConflict),
	})
}

// freedBy returns the ports of the listeners that a plan deletes.
func freedBy(done model.Plan) []sharing.Port {
	var freed []sharing.Port
	for i := range done.Steps {
		if step := &done.Steps[i]; step.Op == model.OpDeleteListener {
			freed = append(freed, portOf(&step.Listener))
		}
	}
	return freed
}

// noteCreation remembers whether the cloud takes one more NLB, see [groups.Groups.Creation].
func (n *nlb) noteCreation(svc *corev1.Service, done model.Plan, refused, err error) (goesBack bool, failure error) {
	goesBack, failure = n.shared.Creation(svc, n.Known, groups.Outcome{
		Refused: refused, Err: err,
		Created: n.ID() != "" && done.Has(model.OpCreateLoadBalancer), Deleted: done.Has(model.OpDeleteLoadBalancer),
	})
	if goesBack {
		n.observed = n.invalidateParts(map[model.Part]string{model.PartLoadBalancer: "the cloud does not allow another NLB"})
	}
	return goesBack, failure
}
