package slb

import (
	"context"
	"maps"
	"math/rand/v2"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/deploy"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/model"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/observe"
)

const (
	// driftWindow is within which time the CLBs of other Services become due that are read together with one that is.
	driftWindow = 2 * time.Minute
	// driftCycle is about in how many periods everything of a CLB is read on its own. Nothing else shows a group that no listener uses.
	driftCycle = 10
)

// someComparisons returns how often a CLB is only compared after everything of it was read. It varies, so that a period costs as much as
// any other.
func someComparisons() int { return driftCycle/2 + rand.N(driftCycle) }

// isUnchanged detects drift by comparison: it reports whether a CLB is as it is known. It reads ten CLBs with their listeners together, the
// list of the groups in the first period after a start, and the backend servers in every second one after that. What it reads replaces
// nothing that is known: where it says false, everything of the CLB is to be read on its own, be it because something differs, could not be
// read, or is not part of the comparison.
func (e *engine) isUnchanged(ctx context.Context, of driver.Request, known observed, charge deploy.PendingCharge) bool {
	if known.wholeModel() == nil || !known.isTrusted() || known.asksForGroups(of.Params) {
		return false
	}
	read, ok := e.readTogether(ctx, of, known)
	if !ok {
		return false
	}
	charge.Correct(&read.lb, time.Now())
	if !sameAttributes(read.lb, known.loadBalancer.Value) ||
		!sameListeners(known.ownListeners(of, observe.New(read.lb, read.listeners).Listeners), known.ownListeners(of, known.listeners.Value)) {
		return false
	}
	if known.groupsUnlisted {
		return e.sameGroups(ctx, known, mark.ServiceName(of.Service))
	}
	return !known.comparesBackends() || e.sameBackends(ctx, known.groups.Value)
}

// readTogether returns a CLB that was read together with those of other Services, whose turn is soon.
func (e *engine) readTogether(ctx context.Context, of driver.Request, known observed) (preload, bool) {
	if read, ok := e.readings.Recent(known.Presence.ID(), driftWindow, known.mayBeShared()); ok {
		return read, true
	}
	at := time.Now()
	all, err := e.api.DescribeLoadBalancers(ctx, alicloud.LoadBalancerQuery{IDs: e.comparedWith(known.Presence.ID(), of)})
	if err != nil || len(all) == 0 {
		return preload{}, false
	}
	if _, err = e.readListeners(ctx, all, at); err != nil {
		return preload{}, false
	}
	return e.readings.Recent(known.Presence.ID(), driftWindow, known.mayBeShared())
}

// readListeners reads the listeners of up to ten CLBs that were read at a time, for all Services on them.
func (e *engine) readListeners(ctx context.Context, balancers []alicloud.LoadBalancer, at time.Time) (map[string]preload, error) {
	ids := make([]string, len(balancers))
	for i := range balancers {
		ids[i] = balancers[i].ID
	}
	listeners, err := e.api.DescribeListeners(ctx, ids...)
	if err != nil {
		return nil, err
	}
	read := make(map[string]preload, len(balancers))
	for _, lb := range balancers {
		read[lb.ID] = preload{lb: lb, listeners: listeners[lb.ID]}
	}
	e.readings.Add(read, at)
	return read, nil
}

// comparedWith returns the id of a CLB, and those of others that are compared soon.
func (e *engine) comparedWith(id string, of driver.Request) []string {
	return of.Together(id, listenersPerCall, driftWindow, func(balancer driver.Balancer) string {
		if other, ok := balancer.(clb); ok && other.comparisons > 0 && !e.readings.HasRecent(other.ID(), driftWindow, other.mayBeShared()) {
			return other.ID()
		}
		return ""
	})
}

// sameGroups reports whether a list of the groups of a CLB shows those of the Service that are known, and no others: a process that ended
// in the middle of its work may have left one that no listener uses.
func (e *engine) sameGroups(ctx context.Context, known observed, svc types.NamespacedName) bool {
	listed, err := e.api.DescribeVServerGroups(ctx, known.Presence.ID())
	if err != nil {
		return false
	}
	unseen := sets.New[string]()
	for i := range known.groups.Value {
		unseen.Insert(known.groups.Value[i].ID)
	}
	for i := range listed {
		marked, _, ok := mark.Parse(listed[i].Name)
		if ok && marked == svc && !unseen.Has(listed[i].ID) {
			return false
		}
		unseen.Delete(listed[i].ID)
	}
	return unseen.Len() == 0
}

// sameBackends reports whether groups have the backend servers that are known.
func (e *engine) sameBackends(ctx context.Context, groups []model.Group) bool {
	for i := range groups {
		read, err := e.api.DescribeVServerGroup(ctx, groups[i].ID)
		if err != nil || !groups[i].Foreign() && read.Name != groups[i].Name ||
			!sets.New(read.Backends...).Equal(sets.New(groups[i].Backends...)) {
			return false
		}
	}
	return true
}

// sameAttributes compares CLBs; the order of tags does not count.
func sameAttributes(read, known alicloud.LoadBalancer) bool {
	sameTags := sets.New(read.Tags...).Equal(sets.New(known.Tags...))
	read.Tags, known.Tags = nil, nil
	return sameTags && reflect.DeepEqual(read, known)
}

// sameListeners compares listeners but for their domain extensions, which have reads of their own.
func sameListeners(read, known []model.Listener) bool {
	byKey := make(map[alicloud.ListenerKey]model.Listener, len(known))
	for _, listener := range known {
		byKey[listener.ListenerKey] = listener
	}
	for _, r := range read {
		k, ok := byKey[r.ListenerKey]
		if !ok || r.Description != k.Description || r.GroupID != k.GroupID || r.Status != k.Status || !maps.Equal(r.Attributes, k.Attributes) {
			return false
		}
	}
	return len(read) == len(known)
}
