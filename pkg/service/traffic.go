package service

import (
	"iter"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
)

// ConditionTraffic is the condition of a Node that says whether load balancers send it new connections. Whoever drains the node waits until
// it is False: connections would be lost that come after the pods have gone.
const ConditionTraffic corev1.NodeConditionType = "LoadBalancerTraffic"

// The reasons of [ConditionTraffic].
const (
	TrafficServing      = "Serving"      // True
	TrafficDraining     = "Draining"     // False: the node keeps the connections that it has
	TrafficRemoved      = "Removed"      // False: it is in no server group
	TrafficNotConfirmed = "NotConfirmed" // Unknown
)

// nodeTraffic is what the load balancers of all Services together send to a node.
type nodeTraffic struct {
	// serves says that one of them sends it new connections, drains that one has it with weight 0.
	serves, drains bool
	// held says that one of them may have the node, for what takes it out is not confirmed. unknown says that one may have any node.
	held, unknown bool
	// leaving says that the Node shows that it is to be taken out, and that this has not been confirmed for some time.
	leaving bool
}

// conditionAfter returns what the condition of a Node is to be that has a status now, "" for none. Without a reason, it stays as it is: in an
// outage nothing can be confirmed, and what was True or False remains so until something says otherwise. Only a proof makes it False.
func (n nodeTraffic) conditionAfter(now corev1.ConditionStatus) (status corev1.ConditionStatus, reason string) {
	confirmed := !n.held && !n.unknown
	switch {
	case n.serves:
		return corev1.ConditionTrue, TrafficServing
	case now == "" && !n.drains: // it never was a backend
		return "", ""
	case confirmed && n.drains:
		return corev1.ConditionFalse, TrafficDraining
	case confirmed:
		return corev1.ConditionFalse, TrafficRemoved
	case now == corev1.ConditionFalse && !n.held, now == corev1.ConditionTrue && !n.leaving:
		return now, ""
	}
	return corev1.ConditionUnknown, TrafficNotConfirmed
}

// traffic is to which nodes the load balancers of all Services send, by what this process has read and written. Nodes are known by the IDs
// of their instances, or their addresses.
type traffic struct {
	mu       sync.Mutex // guards the rest
	services map[types.NamespacedName]serviceTraffic
	// serving, draining and held are how many Services have a node so.
	serving, draining, held map[string]int
	// last is what most Services have: they share one set.
	last sets.Set[string]
	// changed is signaled after a change.
	changed chan struct{}
}

// serviceTraffic is that of one Service. Nobody changes the sets.
type serviceTraffic struct {
	uid               types.UID
	serving, draining sets.Set[string]
	// held are nodes that the Service may have although it is not known to: it is about to take them, or what took them out is not confirmed.
	held sets.Set[string]
	// readAt is when all that was read, zero while the cloud may hold something else. Only what is read from provenAt on proves that a node
	// is not there: until then, calls without an answer may be under way, and reads may lag.
	readAt, provenAt time.Time
	// known says that all of it was confirmed once, asked that it is to be read again to be.
	known, asked bool
}

func newTraffic() traffic {
	return traffic{
		services: map[types.NamespacedName]serviceTraffic{}, serving: map[string]int{}, draining: map[string]int{}, held: map[string]int{},
		changed: make(chan struct{}, 1),
	}
}

// unproven reports whether nothing but another read is needed to confirm what the Service has.
func (s *serviceTraffic) unproven() bool { return !s.readAt.IsZero() && s.readAt.Before(s.provenAt) }

// confirmed reports whether the Service has no other nodes than those that it is known to have.
func (s *serviceTraffic) confirmed() bool { return !s.readAt.IsZero() && !s.unproven() }

// of returns what is known of a Service, and whether anything is. The caller holds the lock.
func (t *traffic) of(svc *corev1.Service) (known serviceTraffic, passed bool) {
	if known, passed = t.services[mark.ServiceName(svc)]; known.uid != svc.UID {
		return serviceTraffic{uid: svc.UID}, false
	}
	return known, passed
}

// put replaces what is known of a Service. The caller holds the lock.
func (t *traffic) put(key types.NamespacedName, after serviceTraffic) {
	t.count(t.services[key], -1)
	t.count(after, 1)
	if t.services[key] = after; after.uid == "" {
		delete(t.services, key)
	}
	select {
	case t.changed <- struct{}{}:
	default: // it is signaled
	}
}

func (t *traffic) count(of serviceTraffic, by int) {
	for _, each := range []struct {
		nodes sets.Set[string]
		to    map[string]int
	}{{of.serving, t.serving}, {of.draining, t.draining}, {of.held, t.held}} {
		for node := range each.nodes {
			if each.to[node] += by; each.to[node] == 0 {
				delete(each.to, node)
			}
		}
	}
}

// hold notes that a Service is about to take nodes, so that none of them counts as out before it is known what came of that.
func (t *traffic) hold(svc *corev1.Service, nodes sets.Set[string]) {
	t.mu.Lock()
	defer t.mu.Unlock()
	known, _ := t.of(svc)
	if joining := nodes.Difference(known.serving); !known.held.IsSuperset(joining) {
		known.held = known.held.Union(joining)
		t.put(mark.ServiceName(svc), known)
	}
}

// note notes what a Service has once its load balancer was read, and once a plan was carried out, which may have taken nodes out: wrote. A
// node that is missing for another reason may be missing because the read lags. settled is when calls without an answer have come to an end.
// nodes and readAt are those of [driver.Balancer].
func (t *traffic) note(svc *corev1.Service, readAt time.Time, wrote bool, settled time.Time, nodes func() iter.Seq2[string, bool]) {
	t.mu.Lock()
	defer t.mu.Unlock()
	before, passed := t.of(svc)
	if passed && !wrote && before.confirmed() && readAt.Equal(before.readAt) && !settled.After(before.provenAt) {
		return // most passes find nothing
	}
	after := before
	if after.readAt, after.asked = readAt, false; settled.After(after.provenAt) {
		after.provenAt = settled
	}
	if found := nodes(); found != nil {
		after.serving, after.draining = t.sort(found)
	}
	out := before.serving.Difference(after.serving)
	if late := time.Now().Add(longestCall); !wrote && out.Len() > 0 && late.After(after.provenAt) {
		after.provenAt = late
	}
	if after.confirmed() {
		after.held, after.known = nil, true
	} else if out.Len() > 0 {
		after.held = after.held.Union(out)
	}
	t.put(mark.ServiceName(svc), after)
}

// asks reports whether the backends of a Service are to be read again because nodes leave.
func (t *traffic) asks(svc *corev1.Service) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	known, _ := t.of(svc)
	return known.asked && known.unproven()
}

// ask returns the Services whose backends are to be read again because nodes leave, once each.
func (t *traffic) ask(now time.Time) (due []types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for key, known := range t.services {
		if known.unproven() && !known.asked && !now.Before(known.provenAt) {
			known.asked = true
			t.services[key] = known
			due = append(due, key)
		}
	}
	return due
}

// sort returns the nodes that get new connections, and those with weight 0 only.
func (t *traffic) sort(found iter.Seq2[string, bool]) (serving, draining sets.Set[string]) {
	serving, draining = sets.New[string](), sets.New[string]()
	for node, takes := range found {
		if takes {
			serving.Insert(node)
		} else {
			draining.Insert(node)
		}
	}
	draining = draining.Difference(serving)
	if !t.last.Equal(serving) {
		t.last = serving
	}
	return t.last, draining
}

// toNode returns what the node with these IDs and addresses gets. The caller holds the lock.
func (t *traffic) toNode(ids []string) (found nodeTraffic) {
	for _, id := range ids {
		found.serves = found.serves || t.serving[id] > 0
		found.drains = found.drains || t.draining[id] > 0
		found.held = found.held || t.held[id] > 0
	}
	return found
}
