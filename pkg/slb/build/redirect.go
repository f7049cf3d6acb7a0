package build

import (
	"maps"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/model"
)

// readForwards reads the annotation forward-port: the ports of http listeners that redirect their clients to an https one.
func (b *builder) readForwards() {
	b.forwarding, b.forwardedTwice = map[int]int{}, sets.New[int]()
	for from, to := range annotation.Pairs(b.in.Params.Get(annotation.ForwardPort)) {
		source, err1 := strconv.Atoi(from)
		target, err2 := strconv.Atoi(to)
		if err1 != nil || err2 != nil {
			continue
		}
		if _, twice := b.forwarding[source]; twice {
			b.addProblem(problem.ReasonInvalidAnnotation, "%s: port %d is specified twice", annotation.ForwardPort, source)
			b.forwardedTwice.Insert(source)
		}
		b.forwarding[source] = target
	}
}

// checkForwards reports pairs that have no http listener of the Service at one end or no https listener at the other.
// On an existing CLB (annotation id), the target may be a listener of its owner.
func (b *builder) checkForwards() {
	for _, source := range slices.Sorted(maps.Keys(b.forwarding)) {
		target, listener := b.forwarding[source], b.listenerAt(source, alicloud.ProtocolHTTP)
		if listener == nil {
			b.addProblem(problem.ReasonInvalidAnnotation, "%s: %d:%d needs an http listener of the Service on port %d (%s)", annotation.ForwardPort,
				source, target, source, annotation.ProtocolPort)
		}
		if b.listenerAt(target, alicloud.ProtocolHTTPS) == nil && !b.observed.HTTPSPorts().Has(target) {
			if listener != nil {
				listener.UpdateOnly = true
			}
			b.addProblem(problem.ReasonInvalidAnnotation, "%s: %d:%d needs an https listener on port %d (%s)", annotation.ForwardPort, source,
				target, target, annotation.ProtocolPort)
		}
	}
}

func (b *builder) listenerAt(port int, protocol string) *model.Listener {
	return b.model.Listener(alicloud.ListenerKey{Port: port, Protocol: protocol})
}

// redirectAttributes returns the attributes of an http listener that only redirects its clients to an https one. Nothing else of such a
// listener counts, so nothing else is compared.
func (b *builder) redirectAttributes(key alicloud.ListenerKey) (alicloud.Attributes, bool) {
	target, ok := b.forwarding[key.Port]
	if !ok || key.Protocol != alicloud.ProtocolHTTP {
		return nil, false
	}
	return alicloud.Attributes{alicloud.AttributeListenerForward: "on", alicloud.AttributeForwardPort: strconv.Itoa(target)}, true
}

// forwardsLast orders the listeners so that one that forwards is made after the one that it forwards to.
func forwardsLast(listeners []model.Listener) {
	rank := func(l model.Listener) int {
		if l.Attributes[alicloud.AttributeForwardPort] != "" {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(listeners, func(a, b model.Listener) int { return rank(a) - rank(b) })
}
