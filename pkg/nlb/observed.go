package nlb

import (
	"maps"
	"slices"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/model"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/groups"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/presence"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// observed is what is known of the NLB of a Service, part by part. Its zero value knows nothing. It is a value: what changes it returns
// another one.
type observed struct {
	groups.Known

	lb        driver.Part[alicloud.NLB]
	listeners driver.Part[[]model.Listener]
	groups    driver.Part[[]model.Group]
	// strays is why nobody knows what uses the groups elsewhere, nil where that was read.
	strays error
	// deletingGroups are ids of groups of the Service that were being deleted when groups was read.
	deletingGroups []string
	// groupsMissing says whether groups are missing that should be there, accessMissing the same of access. groupsUnseen says whether a
	// process that removes the Service, and has never seen its groups, finds none.
	groupsMissing, accessMissing, groupsUnseen presence.Missing
	// askedMissing is since when the load balancer is missing that the annotation names.
	askedMissing presence.Missing
	// joinedGroups is the annotation vgroup-port as it was when groups was read.
	joinedGroups string
	// access is the security group of the source ranges, nil for none. It outlives the NLB.
	access driver.Part[*model.Access]
	// accessBeside are the ids of further security groups with the owner tag of the Service that look like it.
	accessBeside []string
	// formers is what is known of the places that the Service has left.
	formers map[string]observed
	// leftTags are keys of the Service's tags on those of them that it has not made, by the id of those.
	leftTags map[string][]string
	// empty is what was found empty where the Service is to be removed, zero while nothing is.
	empty presence.Emptiness
	// creations are those that the cloud gave up one after the other.
	creations failedCreations
	// unsettledSince is since when reads show changes that no job explains which this process waits for, zero for no such changes.
	unsettledSince time.Time
	// refusal is why the Service may not use the load balancer that its annotation names, so that it stays on the one that it is on.
	refusal *problem.ConfigError
	jobs    jobs
	// refused are the targets that the cloud refuses to create, or failed to, since the ports of the Service last changed.
	refused map[string]bool
}

// nlbID is that of the load balancer, empty where none is known.
func (o observed) nlbID() string {
	if !o.Presence.Present() {
		return ""
	}
	return o.lb.Value.ID
}

// wholeModel returns what is known as one model; without a load balancer there may be groups.
func (o observed) wholeModel() *model.Model {
	m := &model.Model{Groups: o.groups.Value, Access: o.access.Value}
	if o.Presence.Present() {
		m.LoadBalancer, m.Listeners, m.Reused = o.lb.Value, o.listeners.Value, o.Presence.Reused()
	}
	return m.Clone()
}

// clusterID is the one in the marks: a load balancer of ours keeps its own, which its tag shows as long as its listeners have it, too. A
// tag that somebody edited would make them those of another cluster. configured is that of the cluster.
func (o observed) clusterID(configured string) string {
	if !o.Group.IsZero() {
		return o.Group.ClusterID
	}
	if o.Presence.Present() && !o.Presence.Reused() {
		if id, ok := o.lb.Value.Tag(mark.TagCluster); ok && id != "" && (!o.listeners.Known() || o.isMarked(id)) {
			return id
		}
	}
	return configured
}

// isMarked reports whether a listener has a mark with the cluster id.
func (o observed) isMarked(clusterID string) bool {
	return slices.ContainsFunc(o.listeners.Value, func(l model.Listener) bool {
		_, id, ok := mark.ParseNLB(model.Text(l.Description))
		return ok && id == clusterID
	})
}

// isTrusted reports whether nothing needs reading.
func (o observed) isTrusted() bool {
	if o.Presence.Gone() {
		return o.groups.Trusted()
	}
	return o.Presence.Present() && o.lb.Trusted() && o.listeners.Trusted() && o.groups.Trusted()
}

// invalidateAll has everything read again.
func (o observed) invalidateAll(reason string) observed {
	return o.invalidateParts(map[model.Part]string{
		model.PartLoadBalancer: reason, model.PartListeners: reason, model.PartGroups: reason, model.PartAccess: reason,
	})
}

func (o observed) invalidateParts(reasons map[model.Part]string) observed {
	for part, reason := range reasons {
		switch part {
		case model.PartLoadBalancer:
			o.lb.Invalidate(reason)
			o.Presence = o.Presence.Doubted()
		case model.PartListeners, model.PartCertificates:
			o.listeners.Invalidate(reason)
		case model.PartGroups:
			o.groups.Invalidate(reason)
		case model.PartAccess:
			o.access.Invalidate(reason)
		}
	}
	return o
}

// afterCreation returns what is known after a job has ended. One that failed to create its targets leaves them refused.
func (o observed) afterCreation(p pending, succeeded bool) observed {
	if !succeeded && !p.creates {
		return o
	}
	refused := maps.Clone(o.refused)
	if refused == nil {
		refused = map[string]bool{}
	}
	for _, target := range o.jobs.targetsOf(p.id) {
		switch {
		case succeeded:
			delete(refused, target)
		case target != model.TargetLoadBalancer: // jobs on listeners lock it, too
			refused[target] = true
		}
	}
	o.refused = refused
	return o
}

// doubtJoined puts the server groups in doubt where the annotation names others.
func (o observed) doubtJoined(of driver.Request) observed {
	if o.Presence.WasReused() && o.groups.Known() && of.Params.Get(annotation.VGroupPort) != o.joinedGroups {
		o.groups.Invalidate("an annotation names other server groups")
	}
	return o
}

// isBusy reports whether a job on a target is under way.
func (o observed) isBusy(target string) bool {
	if _, ok := o.jobs[target]; ok {
		return true
	}
	return target == model.TargetLoadBalancer && o.Presence.Present() && o.lb.Value.Status == alicloud.NLBProvisioning
}

// busyGroup reports whether a job on a group is under way.
func (o observed) busyGroup(id string) bool {
	at := slices.IndexFunc(o.groups.Value, func(g model.Group) bool { return g.ID == id })
	return at >= 0 && (o.isBusy(model.TargetGroup(o.groups.Value[at].Name)) || o.isBusy(model.TargetGroup(id)))
}

// withLocation returns what is known after the load balancer was located.
func (o observed) withLocation(found location) observed {
	o.refusal, o.Group, o.Stays, o.From = found.Refusal, found.Group, found.Stays, found.From
	switch {
	case found.Presence.Present():
		if found.LB.ID != o.lb.Value.ID {
			o.listeners = driver.Part[[]model.Listener]{}
			o.groups.Invalidate("the Service is on another load balancer")
		}
		o.lb.Set(found.LB)
	case found.Presence.Gone() && found.Missed:
		o.lb, o.listeners = driver.Part[alicloud.NLB]{}, driver.Part[[]model.Listener]{}
	}
	o.Presence = found.Presence
	return o
}

// afterDeployment returns what is known after a plan was carried out.
func (o observed) afterDeployment(d deployment) observed {
	o = o.withModel(d.model)
	o = o.invalidateParts(d.doubts)
	if d.doubts[model.PartLoadBalancer] != "" && d.model.LoadBalancer.ID == "" {
		o.Presence = o.Presence.AfterUnansweredCreation()
	}
	o.jobs, o.refused = o.jobs.withStarted(d.jobs), d.refused
	if d.deleted {
		deletion := o.jobs[model.TargetLoadBalancer]
		deletion.step = string(model.OpDeleteLoadBalancer)
		o.jobs = o.jobs.withJob(model.TargetLoadBalancer, deletion)
	}
	if d.lost != "" {
		o.Presence = o.Presence.AfterLoss(d.lost)
	}
	return o
}

// withModel takes over a model after a plan was carried out.
func (o observed) withModel(m *model.Model) observed {
	o.groups.Value, o.access.Value = m.Groups, m.Access
	if m.Access != nil && !o.access.Known() {
		o.access.Set(m.Access)
	}
	switch {
	case m.LoadBalancer.ID == "":
	case !o.Presence.Present():
		o.Presence = presence.Found(m.LoadBalancer.ID, false)
		o.lb.Set(m.LoadBalancer)
		o.listeners.Set(m.Listeners)
	default:
		o.lb.Value, o.listeners.Value = m.LoadBalancer, m.Listeners
	}
	return o
}
