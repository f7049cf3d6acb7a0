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
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/backend"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// servicePort finds the port of the Service that an item of an annotation names.
func (b *builder) servicePort(suffix annotation.Suffix, item, text string) (corev1.ServicePort, bool) {
	number, err := strconv.Atoi(text)
	at := slices.IndexFunc(b.in.Service.Spec.Ports, func(p corev1.ServicePort) bool { return int(p.Port) == number })
	if err != nil || at < 0 {
		b.addProblem(problem.ReasonAnnotationNoEffect, "%s: %s has no effect, because the Service has no port %s", suffix, item, text)
		return corev1.ServicePort{}, false
	}
	return b.in.Service.Spec.Ports[at], true
}

// chooseProtocol gives a port a protocol. As with the official CCM, the annotation decides whatever the Service declares; where the Service
// declares both TCP and UDP on the port, it is about the one of its own transport.
func (b *builder) chooseProtocol(port corev1.ServicePort, protocol string) {
	switch before, twice := b.chosen[port.Port]; {
	case protocol == alicloud.NLBUDP && backend.DeclaresPort(b.in.Service, port.Port, true):
	case twice && before != protocol:
		b.unclear.Insert(port.Port)
		b.addProblem(problem.ReasonInvalidAnnotation, "%s: port %d is specified twice", annotation.ProtocolPort, port.Port)
	default:
		b.chosen[port.Port] = protocol
		if !backend.DeclaresPort(b.in.Service, port.Port, isUDP(protocol)) && !b.in.usesPods() {
			b.addProblem(problem.ReasonAnnotationNoEffect, "%s: %s:%d makes a listener that nodes do not answer: the Service declares port %d as %s",
				annotation.ProtocolPort, strings.ToLower(protocol), port.Port, port.Port, port.Protocol)
		}
	}
}

// setProtocol sets the protocol of the listener on a port. Where nobody knows what the author of the Service wants, it is that of the
// listener that is there: another one would take its place.
func (b *builder) setProtocol(port corev1.ServicePort, l *model.Listener) {
	chosen, ok := b.chosen[port.Port]
	if ok && backend.MayListen(b.in.Service, port, isUDP(chosen)) {
		l.Protocol = chosen
	}
	if !b.unclear.Has(port.Port) && (ok || !b.in.Params.Refused(annotation.ProtocolPort)) {
		return
	}
	for i := range b.observed.Listeners {
		have := &b.observed.Listeners[i]
		if have.Ports() == l.Ports() && b.owner.OwnsNLB(model.Text(have.Description)) &&
			backend.MayListen(b.in.Service, port, isUDP(have.Protocol)) {
			l.Protocol = have.Protocol
		}
	}
}

func isUDP(protocol string) bool { return protocol == alicloud.NLBUDP }

// chooseRange gives a port a range of listener ports.
func (b *builder) chooseRange(port corev1.ServicePort, item string) {
	start, end := annotation.RangeOf(item)
	reason := ""
	switch {
	case !b.in.usesPods():
		reason = "a range of ports needs " + annotation.BackendType + ": eni"
	case port.TargetPort.Type != intstr.Int:
		reason = "the target port must be a number, for the health check"
	}
	if reason != "" {
		b.addProblem(problem.ReasonInvalidAnnotation, "%s: %q is not accepted: %s", annotation.ListenerPortRange, item, reason)
		return
	}
	b.ranges[port.Port] = [2]int{start, end}
}
