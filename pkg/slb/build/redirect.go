package build

import (
	"slices"
	"strconv"
	"strings"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/model"
)

// forwards reads the annotation forward-port: the ports of http listeners that send their clients on to an https one.
func (b *builder) forwards() map[int]int {
	forwards := map[int]int{}
	for item := range strings.SplitSeq(b.in.Params.Get(annotation.ForwardPort), ",") {
		from, to, ok := strings.Cut(item, ":")
		source, err1 := strconv.Atoi(from)
		target, err2 := strconv.Atoi(to)
		if !ok || err1 != nil || err2 != nil {
			continue
		}
		if _, twice := forwards[source]; twice {
			b.problem(problem.ReasonInvalidAnnotation, "%s: port %d is named twice", annotation.ForwardPort, source)
		}
		forwards[source] = target
	}
	return forwards
}

// checkForwards reports pairs that have no http listener of the Service at one end or no https listener at the other.
// On a CLB that its user made, the target may be a listener of theirs.
func (b *builder) checkForwards() {
	for source, target := range b.forwarding {
		if b.listenerAt(source, alicloud.ProtocolHTTP) == nil {
			b.problem(problem.ReasonInvalidAnnotation, "%s: %d:%d needs an http listener of the Service on port %d (%s)", annotation.ForwardPort, source, target, source, annotation.ProtocolPort)
		}
		if b.listenerAt(target, alicloud.ProtocolHTTPS) == nil && !b.in.HTTPSPorts.Has(target) {
			b.problem(problem.ReasonInvalidAnnotation, "%s: %d:%d needs an https listener on port %d (%s)", annotation.ForwardPort, source, target, target, annotation.ProtocolPort)
		}
	}
}

func (b *builder) listenerAt(port int, protocol string) *model.Listener {
	return b.model.Listener(alicloud.ListenerKey{Port: port, Protocol: protocol})
}

// forwarded returns the attributes of an http listener that only sends its clients on to an https one. Nothing else of
// such a listener counts, so nothing else is compared.
func (b *builder) forwarded(key alicloud.ListenerKey) (alicloud.Attributes, bool) {
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
