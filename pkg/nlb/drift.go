package nlb

import (
	"cmp"
	"context"
	"reflect"
	"slices"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/model"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
)

// driftWindow is within which time the NLBs of other Services become due that are read together with one that is, and how old the list of
// all server groups may be that Services are compared with.
const driftWindow = 2 * time.Minute

// compareWhenDue returns what is known of the NLB of a Service, with the parts in doubt that are to be read. compared says that drift
// detection is due, and that a comparison found none.
func (e *engine) compareWhenDue(ctx context.Context, of driver.Request, known observed) (after observed, compared bool) {
	drift := of.DriftDue && len(known.jobs) == 0
	if drift && !of.Unsettled {
		if current := e.doubtGroup(of, known.doubtJoined(of)); e.isUnchanged(ctx, of, current) {
			return current.afterComparison(of), true
		}
	}
	if drift {
		known = known.invalidateAll("due for drift detection")
	}
	return e.doubtGroup(of, known.doubtJoined(of)), false
}

// isUnchanged detects drift by comparison: it reports whether an NLB is as it is known. It reads twenty NLBs with their listeners together,
// and the server groups of all Services; only the backend servers take a read for each group. What it reads replaces nothing that is known:
// where it says false, everything is to be read on its own, be it because something differs, is missing, or could not be read.
func (e *engine) isUnchanged(ctx context.Context, of driver.Request, known observed) bool {
	if !known.isComparable(of) || e.shared.HasIdle(known.Group, known.nlbID()) {
		return false
	}
	read, ok := e.readTogether(ctx, of, known)
	return ok && sameLoadBalancer(&read.lb, &known.lb.Value) &&
		sameListeners(known.ownListeners(of, read.listeners), known.ownListeners(of, known.listeners.Value)) && e.sameGroups(ctx, of, known)
}

// isComparable reports whether the Service is where it is to be, so that a comparison shows all that reading would. A Service that moves,
// or that may not be where it asks to be, also has to find out about other load balancers.
func (o observed) isComparable(of driver.Request) bool {
	at := of.Service.Labels[driver.LabelLoadBalancerID]
	return o.isTrusted() && o.Presence.Present() && len(o.jobs) == 0 && len(o.Leaving) == 0 && o.Stays == nil && o.From == "" &&
		o.refusal == nil &&
		(at == "" || at == o.nlbID())
}

// afterComparison returns what is known after a comparison showed no drift. What few Services have is read again.
func (o observed) afterComparison(of driver.Request) observed {
	o.access.Invalidate("due for drift detection")
	if at := time.Now().Add(-driftWindow); at.After(o.groups.ReadAt) { // an empty group is known by the list alone
		o.groups.ReadAt = at
	}
	if mayHaveCertificates(of) || slices.ContainsFunc(o.listeners.Value, func(l model.Listener) bool { return len(l.Certificates) > 0 }) {
		o.listeners.Invalidate("due for drift detection")
	}
	return o
}

// readTogether returns an NLB that was read together with those of other Services, whose turn is soon.
func (e *engine) readTogether(ctx context.Context, of driver.Request, known observed) (preload, bool) {
	if read, ok := e.readings.Recent(known.nlbID(), driftWindow, known.mayBeShared()); ok {
		return read, true
	}
	at := time.Now()
	ids := of.Together(known.nlbID(), alicloud.MaxNLBQuery, driftWindow, func(balancer driver.Balancer) string {
		if other, ok := balancer.(nlb); ok && other.isTrusted() && len(other.jobs) == 0 && !e.readings.HasRecent(other.nlbID(), driftWindow, other.mayBeShared()) {
			return other.nlbID()
		}
		return ""
	})
	all, err := e.api.ListNLBs(ctx, alicloud.NLBQuery{IDs: ids})
	if err != nil || len(all) == 0 {
		return preload{}, false
	}
	listeners, err := e.listenersOf(ctx, ids)
	if err != nil {
		return preload{}, false
	}
	read := make(map[string]preload, len(all))
	for i := range all {
		read[all[i].ID] = preload{lb: all[i], listeners: listeners[all[i].ID]}
	}
	e.readings.Add(read, at)
	return e.readings.Recent(known.nlbID(), driftWindow, known.mayBeShared())
}

func (o observed) mayBeShared() bool { return !o.Group.IsZero() || o.Presence.Reused() }

// ownListeners leaves out the listeners of the other Services of a group: each compares its own.
func (o observed) ownListeners(of driver.Request, listeners []model.Listener) []model.Listener {
	if o.Group.IsZero() {
		return listeners
	}
	owner := mark.OwnerOf(of.Service, o.Group.ClusterID)
	return slices.DeleteFunc(slices.Clone(listeners), func(l model.Listener) bool { return owner.OwnedNLBByOther(model.Text(l.Description)) })
}

// sameGroups reports whether the server groups of a Service are those that are known, and as they are known. Those that are not in the list
// of all, because they are another's or have lost their tags, are read by id.
func (e *engine) sameGroups(ctx context.Context, of driver.Request, known observed) bool {
	all, err := e.allGroups.Within(ctx, driftWindow, e.preloadGroups)
	if err != nil {
		return false
	}
	listed := all[mark.DefaultName(of.Service.UID)]
	var others []string
	for i := range known.groups.Value {
		id := known.groups.Value[i].ID
		if !slices.ContainsFunc(listed, func(g alicloud.NLBGroup) bool { return g.ID == id }) {
			others = append(others, id)
		}
	}
	for ids := range slices.Chunk(others, alicloud.MaxNLBQuery) {
		read, err := e.api.ListNLBGroups(ctx, alicloud.NLBGroupQuery{IDs: ids})
		if err != nil {
			return false
		}
		listed = slices.Concat(listed, read)
	}
	return len(listed) == len(known.groups.Value) && !slices.ContainsFunc(listed, func(g alicloud.NLBGroup) bool {
		return !e.sameGroup(ctx, &g, known)
	})
}

// sameGroup reports whether a server group is known, and has the settings and the backend servers that are known.
func (e *engine) sameGroup(ctx context.Context, listed *alicloud.NLBGroup, known observed) bool {
	at := slices.IndexFunc(known.groups.Value, func(g model.Group) bool { return g.ID == listed.ID })
	if at < 0 || !reflect.DeepEqual(comparableGroup(*listed), comparableGroup(known.groups.Value[at].NLBGroup)) {
		return false
	}
	servers := known.groups.Value[at].Servers
	if listed.ServerCount == 0 || len(servers) == 0 {
		return listed.ServerCount == len(servers)
	}
	read, err := e.api.ListNLBServers(ctx, listed.ID)
	return err == nil && sameServers(read, servers)
}

// sameServers compares backend servers. One that this process added has no status, and an instance no address: nobody has read it since.
func sameServers(read, known []alicloud.NLBServer) bool {
	byKey := make(map[alicloud.NLBServerKey]alicloud.NLBServer, len(known))
	for _, server := range known {
		byKey[model.ServerKey(&server)] = server
	}
	for _, r := range read {
		k, ok := byKey[model.ServerKey(&r)]
		if !ok || r.Weight != k.Weight || r.Description != k.Description || r.Status != cmp.Or(k.Status, alicloud.NLBServerAvailable) {
			return false
		}
	}
	return len(read) == len(byKey)
}

// sameLoadBalancer compares NLBs; the order of what they have several of does not count.
func sameLoadBalancer(read, known *alicloud.NLB) bool {
	return reflect.DeepEqual(comparableLoadBalancer(*read), comparableLoadBalancer(*known))
}

func comparableLoadBalancer(lb alicloud.NLB) alicloud.NLB {
	lb.Tags, lb.Locks, lb.SecurityGroups = sortedTags(lb.Tags), slices.Sorted(slices.Values(lb.Locks)), slices.Sorted(slices.Values(lb.SecurityGroups))
	lb.Zones = slices.SortedFunc(slices.Values(lb.Zones), func(a, b alicloud.NLBZone) int { return cmp.Compare(a.ZoneID, b.ZoneID) })
	return lb
}

// comparableGroup leaves out the number of backend servers, which changes with those: they are compared themselves.
func comparableGroup(group alicloud.NLBGroup) alicloud.NLBGroup {
	group.ServerCount = 0
	group.Tags, group.LoadBalancers = sortedTags(group.Tags), slices.Sorted(slices.Values(group.LoadBalancers))
	group.HealthCheck.Codes = slices.Sorted(slices.Values(group.HealthCheck.Codes))
	return group
}

func sortedTags(tags []alicloud.Tag) []alicloud.Tag {
	return slices.SortedFunc(slices.Values(tags), func(a, b alicloud.Tag) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Value, b.Value))
	})
}

// sameListeners compares listeners but for their additional certificates, which have reads of their own.
func sameListeners(read, known []model.Listener) bool {
	byID := make(map[string]alicloud.NLBListener, len(known))
	for i := range known {
		byID[known[i].ID] = comparableListener(known[i].NLBListener)
	}
	for i := range read {
		if k, ok := byID[read[i].ID]; !ok || !reflect.DeepEqual(comparableListener(read[i].NLBListener), k) {
			return false
		}
	}
	return len(read) == len(byID)
}

func comparableListener(listener alicloud.NLBListener) alicloud.NLBListener {
	listener.CertificateIDs = slices.Sorted(slices.Values(listener.CertificateIDs))
	listener.CACertificateIDs = slices.Sorted(slices.Values(listener.CACertificateIDs))
	return listener
}
