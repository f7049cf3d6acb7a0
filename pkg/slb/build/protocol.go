package build

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/backend"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// chooseProtocols reads the annotation protocol-port.
func (b *builder) chooseProtocols() {
	b.chosen, b.chosenTwice = map[int32]string{}, sets.New[int32]()
	for protocol, text := range annotation.Pairs(b.in.Params.Get(annotation.ProtocolPort)) {
		number, err := strconv.ParseInt(text, 10, 32)
		if err != nil {
			continue
		}
		port := int32(number)
		if _, twice := b.chosen[port]; twice {
			b.addProblem(problem.ReasonInvalidAnnotation, "%s: port %d is specified twice", annotation.ProtocolPort, port)
			b.chosenTwice.Insert(port)
			continue
		}
		b.chosen[port] = protocol
		b.checkProtocol(port, protocol)
	}
}

// checkProtocol reports a protocol that no traffic can use.
func (b *builder) checkProtocol(number int32, protocol string) {
	i := slices.IndexFunc(b.in.Service.Spec.Ports, func(p corev1.ServicePort) bool { return p.Port == number })
	switch {
	case i < 0:
		b.addProblem(problem.ReasonAnnotationNoEffect, "%s: %s:%d has no effect, because the Service has no port %d", annotation.ProtocolPort,
			protocol, number, number)
	case !backend.DeclaresPort(b.in.Service, number, isUDP(protocol)) && !b.usesENIs():
		b.addProblem(problem.ReasonAnnotationNoEffect, "%s: %s:%d makes a listener that nodes do not answer: the Service declares port %d as %s",
			annotation.ProtocolPort, protocol, number, number, b.in.Service.Spec.Ports[i].Protocol)
	}
}

// protocolOf returns the protocol of the listener of a port. As with the official CCM, the annotation decides whatever the Service
// declares; where the Service declares both TCP and UDP on the port, it is about the one of its own family. While the annotation is not
// accepted, a listener that is there keeps its protocol.
func (b *builder) protocolOf(port corev1.ServicePort) string {
	declared := strings.ToLower(string(port.Protocol))
	if b.in.Params.Refused(annotation.ProtocolPort) || b.chosenTwice.Has(port.Port) {
		return cmp.Or(b.observedProtocol(port), declared)
	}
	if chosen, ok := b.chosen[port.Port]; ok && backend.MayListen(b.in.Service, port, isUDP(chosen)) {
		return chosen
	}
	return declared
}

// observedProtocol is that of our listener of the port, "" where there is none.
func (b *builder) observedProtocol(port corev1.ServicePort) string {
	for i := range b.observed.Listeners {
		listener := &b.observed.Listeners[i]
		if listener.Port == int(port.Port) && b.owner.Owns(listener.Description) &&
			backend.MayListen(b.in.Service, port, isUDP(listener.Protocol)) {
			return listener.Protocol
		}
	}
	return ""
}

func isUDP(protocol string) bool { return protocol == alicloud.ProtocolUDP }
