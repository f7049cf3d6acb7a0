package slb

import (
	"slices"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/groups"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/presence"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/model"
)

// observed is what is known of the CLB of a Service, part by part. Its zero value knows nothing.
type observed struct {
	groups.Known

	loadBalancer driver.Part[alicloud.LoadBalancer]
	listeners    driver.Part[[]model.Listener]
	groups       driver.Part[[]model.Group]
	// extensions says when the domain extensions in listeners were read. Few Services have any.
	extensions driver.Part[struct{}]
	// access is the list of the Service's source ranges, nil for none. It outlives the CLB.
	access driver.Part[*alicloud.AccessList]
	leavingDoubt
	// formerDoubts are the doubts about the places that the Service has left.
	formerDoubts map[string]leavingDoubt
	// accessMissing says whether that list is missing, groupsMissing the same of vServer groups.
	accessMissing, groupsMissing presence.Missing
	// addresses are the elastic addresses of the CLB.
	addresses elastic
	// comparisons is how often drift is detected by comparison before everything is read again.
	comparisons int
	// groupsUnlisted says that no list of the groups was read, only those that the listeners name.
	groupsUnlisted bool
	// groupsAsked is the annotation vgroup-port as it was when groups was read.
	groupsAsked string
}

// leavingDoubt is what is in doubt where the Service is to be removed.
type leavingDoubt struct {
	// empty is what was found empty, zero while nothing is.
	empty presence.Emptiness
	// groupsUnread is since when the vServer groups cannot be read.
	groupsUnread driver.Unread
}

// wholeModel returns the CLB, nil while none is known.
func (o observed) wholeModel() *model.Model {
	if !o.Presence.Present() {
		return nil
	}
	return &model.Model{
		LoadBalancer: o.loadBalancer.Value, Listeners: slices.Clone(o.listeners.Value), Groups: slices.Clone(o.groups.Value),
		Access: o.access.Value, Reused: o.Presence.Reused(),
	}
}

// maybeCreated reports whether the Service may have a CLB whose id nobody knows: its creation was not answered, or a process before this
// one may have begun it. adopted says that the Service was there before this process.
func (o observed) maybeCreated(adopted bool) bool {
	return o.Presence.IsZero() && adopted || o.Presence.MaybeCreated()
}

// ownPresence is the presence of a CLB that is not one of a group.
func (o observed) ownPresence() presence.Presence {
	if !o.Group.IsZero() {
		return presence.Presence{}
	}
	return o.Presence
}

// mayBeShared reports whether other Services may have listeners on the CLB.
func (o observed) mayBeShared() bool { return !o.Group.IsZero() || o.Presence.Reused() }

// withLeaving returns what is known when the Service leaves load balancers and groups for the CLB that it is on now.
func (o observed) withLeaving(places []string) observed {
	lb := &o.loadBalancer.Value
	id, group := "", o.Group
	if o.Presence.Present() {
		id = lb.ID
		if in, grouped := mark.GroupOn(lb.Tags); grouped && group.IsZero() {
			group = in
		}
	}
	o.Leaving = groups.Leaving(o.Leaving, places, id, group)
	return o
}

// leftGroup is what the Service has left and may have something on, nil if no group is among it.
func (o observed) leftGroup() []string {
	if !slices.ContainsFunc(o.Leaving, mark.IsGroup) {
		return nil
	}
	return o.Leaving
}

// isTrusted reports whether nothing of the CLB needs reading.
func (o observed) isTrusted() bool {
	if o.Presence.Gone() {
		return o.loadBalancer.Trusted()
	}
	return o.loadBalancer.Trusted() && o.listeners.Trusted() && o.groups.Trusted()
}

// trustedListeners are the listeners, none while they are in doubt.
func (o observed) trustedListeners() []model.Listener {
	if !o.listeners.Trusted() {
		return nil
	}
	return o.listeners.Value
}

// invalidateAll has everything read again.
func (o observed) invalidateAll(reason string) observed {
	return o.invalidateParts(map[model.Part]string{
		model.PartLoadBalancer: reason, model.PartListeners: reason, model.PartGroups: reason, model.PartExtensions: reason,
		model.PartAccess: reason,
	})
}

func (o observed) invalidateParts(reasons map[model.Part]string) observed {
	for name, reason := range reasons {
		switch name {
		case model.PartLoadBalancer:
			o.loadBalancer.Invalidate(reason)
		case model.PartListeners:
			o.listeners.Invalidate(reason)
		case model.PartGroups:
			o.groups.Invalidate(reason)
		case model.PartExtensions:
			o.extensions.Invalidate(reason)
		case model.PartAccess:
			o.access.Invalidate(reason)
		}
	}
	return o
}

// asksForGroups reports whether the annotation was changed to name a group that was not there when groups was read. It may have
// been created since.
func (o observed) asksForGroups(params annotation.Params) bool {
	actual := o.wholeModel()
	if actual == nil || !actual.Reused || params.Get(annotation.VGroupPort) == o.groupsAsked {
		return false
	}
	present := actual.ForeignGroups()
	ids, _ := annotation.VGroupsOf(params)
	for _, id := range ids {
		if !present.Has(id) {
			return true
		}
	}
	return false
}

// setObserved takes over a model that was just read.
func (o *observed) setObserved(model *model.Model) {
	o.Presence = presence.Found(model.LoadBalancer.ID, model.Reused)
	o.loadBalancer.Set(model.LoadBalancer)
	o.listeners.Set(model.Listeners)
	o.groups.Set(model.Groups)
}

// afterComparison returns what is known after a comparison showed no drift. What few Services have is read again.
func (o observed) afterComparison() observed {
	o.loadBalancer.Set(o.loadBalancer.Value)
	o.listeners.Set(o.listeners.Value)
	if o.comparesBackends() {
		o.groups.Set(o.groups.Value)
	}
	o.extensions = driver.Part[struct{}]{}
	o.addresses.askAgain()
	o.access.Invalidate("due for drift detection")
	o.groupsUnlisted = false
	o.comparisons--
	return o
}

// comparesBackends reports whether a comparison includes the backend servers.
func (o observed) comparesBackends() bool { return !o.groupsUnlisted && o.comparisons%2 != 0 }

// observedAfterDeletion returns what is known once the CLB was deleted, and the Service is to get another one.
func observedAfterDeletion(o observed) observed {
	return observed{Known: o.Elsewhere(o.Presence.AfterDeletion()), access: o.access}
}

// afterDeployment returns what is known after a plan was carried out.
func (o observed) afterDeployment(d deployment) observed {
	o.access.Value, o.comparisons = d.model.Access, 0
	switch {
	case d.lost != "" && o.Presence.Reused():
		return observed{Known: o.Elsewhere(presence.Presence{}), access: o.access}
	case d.lost != "":
		lost := observed{Known: o.Elsewhere(o.Presence.AfterLoss(d.lost)), access: o.access}
		lost.Group = o.Group
		return lost
	}
	if d.model.LoadBalancer.ID == "" { // none was created, unless the answer is missing
		if d.doubts[model.PartLoadBalancer] != "" {
			o.Presence = o.Presence.AfterUnansweredCreation()
		}
		return o.invalidateParts(d.doubts)
	}
	if !o.Presence.Present() {
		o.extensions.Set(struct{}{}) // a new listener has none
		o.setObserved(d.model)
		return o.invalidateParts(d.doubts)
	}
	o.loadBalancer.Value, o.listeners.Value, o.groups.Value = d.model.LoadBalancer, d.model.Listeners, d.model.Groups
	return o.invalidateParts(d.doubts)
}
