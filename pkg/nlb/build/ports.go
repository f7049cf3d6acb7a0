package build

import (
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/model"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// servicePort finds the port of the Service that an item of an annotation names.
func (b *builder) servicePort(suffix annotation.Suffix, item, text string) (corev1.ServicePort, bool) {
	number, err := strconv.Atoi(text)
	at := slices.IndexFunc(b.in.Service.Spec.Ports, func(p corev1.ServicePort) bool { return int(p.Port) == number })
	if err != nil || at < 0 {
		b.problem(problem.ReasonAnnotationNoEffect, "%s: %s has no effect, because the Service has no port %s", suffix, item, text)
		return corev1.ServicePort{}, false
	}
	return b.in.Service.Spec.Ports[at], true
}

// chooseProtocol gives a port a protocol: TCPSSL is for ports of TCP, and there may be a port of each protocol with the number.
func (b *builder) chooseProtocol(port corev1.ServicePort, protocol string) {
	transport := corev1.ProtocolTCP
	if protocol == alicloud.NLBUDP {
		transport = corev1.ProtocolUDP
	}
	has := slices.ContainsFunc(b.in.Service.Spec.Ports, func(p corev1.ServicePort) bool { return p.Port == port.Port && p.Protocol == transport })
	switch before, twice := b.chosen[port.Port]; {
	case !has:
		b.unclear.Insert(port.Port)
		b.problem(problem.ReasonInvalidAnnotation, "%s: %s:%d needs a port of the protocol %s; accepted for this one: %s",
			annotation.ProtocolPort, strings.ToLower(protocol), port.Port, transport, strings.ToLower(string(port.Protocol)))
	case protocol == alicloud.NLBUDP:
	case twice && before != protocol:
		b.unclear.Insert(port.Port)
		b.problem(problem.ReasonInvalidAnnotation, "%s: port %d is specified twice", annotation.ProtocolPort, port.Port)
	default:
		b.chosen[port.Port] = protocol
	}
}

// protocol sets the protocol of the listener on a port. Where nobody knows what the author of the Service wants, it is that of the listener that is
// there: another one would take its place.
func (b *builder) protocol(port corev1.ServicePort, l *model.Listener) {
	if port.Protocol != corev1.ProtocolTCP {
		return
	}
	chosen, ok := b.chosen[port.Port]
	if ok {
		l.Protocol = chosen
	}
	if !b.unclear.Has(port.Port) && (ok || !b.in.Params.Refused(annotation.ProtocolPort)) {
		return
	}
	if have := b.observed.Listener(l.Key()); have != nil && b.owner.OwnsNLB(model.Text(have.Description)) {
		l.Protocol = have.Protocol
	}
}

// chooseRange gives a port a range of listener ports.
func (b *builder) chooseRange(port corev1.ServicePort, item string) {
	start, end := annotation.RangeOf(item)
	reason := ""
	switch {
	case !b.in.pods():
		reason = "a range of ports needs " + annotation.BackendType + ": eni"
	case port.TargetPort.Type != intstr.Int:
		reason = "the target port must be a number, for the health check"
	}
	if reason != "" {
		b.problem(problem.ReasonInvalidAnnotation, "%s: %q is not accepted: %s", annotation.ListenerPortRange, item, reason)
		return
	}
	b.ranges[port.Port] = [2]int{start, end}
}
