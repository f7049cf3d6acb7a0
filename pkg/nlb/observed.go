package nlb

import (
	"maps"
	"slices"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/model"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/presence"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// pending is a job, or a change of the load balancer's status, that is under way.
type pending struct {
	// id is that of the job, or of the load balancer.
	id           string
	loadBalancer bool
	// step says what it carries out, part what it changes.
	step  string
	part  model.Part
	since time.Time
}

// observed is what is known of the NLB of a Service, part by part. Its zero value knows nothing.
type observed struct {
	presence  presence.Presence
	lb        service.Part[alicloud.NLB]
	listeners service.Part[[]model.Listener]
	groups    service.Part[[]model.Group]
	// listed are the Service's own server groups as they were read together with those of all Services, until their backend servers are read.
	listed []alicloud.NLBGroup
	// groupsMissing is since when groups are missing that should be there, zero while none is.
	groupsMissing time.Time
	// access is the security group of the source ranges, nil for none. It outlives the NLB.
	access service.Part[*model.Access]
	// leftID is the load balancer of the Service's own that it has left for an existing one, left what is known of it, nil where nothing
	// is to be done about it. formerID is an existing one that it has left. strays are its listeners on those; they are read with the
	// groups, which know where they serve.
	leftID, formerID string
	left             service.Part[*alicloud.NLB]
	strays           []model.Listener
	// leftTags are the tags of the Service on the load balancer of formerID.
	leftTags model.LeftTags
	// refusal is why the Service may not use the load balancer that its annotation names, so that it stays on the one that it is on.
	refusal *problem.ConfigError
	// joinedGroups is the annotation vgroup-port as it was when groups was read.
	joinedGroups string
	// jobs are those under way, by target.
	jobs map[string]pending
}

// model returns what is known as one model; without a load balancer there may be groups.
func (o *observed) model() *model.Model {
	m := &model.Model{Groups: o.groups.Value, Access: o.access.Value, Left: o.left.Value, Strays: o.strays, LeftTags: o.leftTags}
	if o.presence.Present() {
		m.LoadBalancer, m.Listeners, m.Reused = o.lb.Value, o.listeners.Value, o.presence.Reused()
	}
	return m.Clone()
}

// trusted reports whether nothing needs reading.
func (o *observed) trusted() bool {
	if o.presence.Gone() {
		return o.groups.Trusted()
	}
	return o.presence.Present() && (o.leftID == "" || o.left.Trusted()) && o.lb.Trusted() && o.listeners.Trusted() && o.groups.Trusted()
}

func (o observed) invalidate(reason string) observed {
	for _, part := range []model.Part{model.PartLoadBalancer, model.PartListeners, model.PartGroups, model.PartAccess} {
		o.invalidatePart(part, reason)
	}
	return o
}

func (o *observed) invalidatePart(part model.Part, reason string) {
	switch part {
	case model.PartLoadBalancer:
		o.lb.Invalidate(reason)
		o.left.Invalidate(reason)
		o.presence = o.presence.Doubted()
	case model.PartListeners:
		o.listeners.Invalidate(reason)
	case model.PartGroups:
		o.groups.Invalidate(reason)
	case model.PartAccess:
		o.access.Invalidate(reason)
	}
}

// busy reports whether a job on a target is under way.
func (o *observed) busy(target string) bool {
	if _, ok := o.jobs[target]; ok {
		return true
	}
	return target == model.TargetLoadBalancer && o.presence.Present() && o.lb.Value.Status == alicloud.NLBProvisioning
}

// busyGroup reports whether a job on a group is under way.
func (o *observed) busyGroup(id string) bool {
	at := slices.IndexFunc(o.groups.Value, func(g model.Group) bool { return g.ID == id })
	return at >= 0 && (o.busy(model.TargetGroup(o.groups.Value[at].Name)) || o.busy(model.TargetGroup(id)))
}

// begin notes something that is under way. The maps of earlier states stay as they are.
func (o *observed) begin(target string, p pending) {
	o.jobs = maps.Clone(o.jobs)
	if o.jobs == nil {
		o.jobs = map[string]pending{}
	}
	o.jobs[target] = p
}

// finish forgets what ended.
func (o *observed) finish(id string) {
	o.jobs = maps.Clone(o.jobs)
	maps.DeleteFunc(o.jobs, func(_ string, p pending) bool { return p.id == id })
}

// take takes over a model after a plan was carried out.
func (o *observed) take(m *model.Model) {
	o.groups.Value, o.access.Value, o.strays, o.leftTags = m.Groups, m.Access, m.Strays, m.LeftTags
	if m.Access != nil && !o.access.Known() {
		o.access.Set(m.Access)
	}
	if m.LoadBalancer.ID == "" {
		return
	}
	if !o.presence.Present() {
		o.presence = presence.Found(m.LoadBalancer.ID, false)
		o.lb.Set(m.LoadBalancer)
		o.listeners.Set(m.Listeners)
		return
	}
	o.lb.Value, o.listeners.Value = m.LoadBalancer, m.Listeners
}
