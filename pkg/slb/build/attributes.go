package build

import (
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/backend"
)

// managedAttributes are the listener attributes that annotations and the Service's spec ask for.
func (b *builder) managedAttributes(protocol string) alicloud.Attributes {
	attributes := alicloud.Attributes{}
	for _, row := range annotation.ListenerTable() {
		if row.Attribute == "" || !slices.Contains(row.Protocols, protocol) || !b.in.Params.Has(row.Suffix) {
			continue
		}
		if value := b.in.Params.Get(row.Suffix); LegalFor(protocol, row.Suffix, value, b.in.Params) {
			attributes[row.Attribute] = Encode(row, value)
		}
	}
	if b.in.Params.Reverted[annotation.Scheduler] && attributes[alicloud.AttributeScheduler] != "" {
		attributes[alicloud.AttributeScheduler] = b.in.DefaultScheduler()
	}
	b.nodeCheck(protocol, attributes)
	b.restrictAccess(attributes)
	return attributes
}

// nodeCheck has nodes checked by what kube-proxy says of them. What another annotation says of the check stays, and a UDP listener is
// checked by UDP alone.
func (b *builder) nodeCheck(protocol string, attributes alicloud.Attributes) {
	port := backend.NodeCheckPort(b.in.Service, b.in.Params, b.usesENIs())
	wanted := alicloud.Attributes{}
	switch {
	case protocol == alicloud.ProtocolUDP ||
		b.in.Params.Get(annotation.HealthCheckType) == alicloud.ProtocolTCP && !b.in.Params.Reverted[annotation.HealthCheckType]:
		return
	case port > 0:
		wanted[alicloud.AttributeHealthCheckURI], wanted[alicloud.AttributeHealthCheckConnectPort] = backend.NodeCheckPath, strconv.Itoa(port)
		wanted[alicloud.AttributeHealthCheckType], wanted[alicloud.AttributeHealthCheck] = "http", "on"
	case b.in.Params.Reverted[annotation.HealthCheck]:
		wanted[alicloud.AttributeHealthCheckConnectPort] = "-520"
		wanted[alicloud.AttributeHealthCheckType], wanted[alicloud.AttributeHealthCheck] = "tcp", "off"
	}
	if protocol == alicloud.ProtocolTCP {
		delete(wanted, alicloud.AttributeHealthCheck)
	} else {
		delete(wanted, alicloud.AttributeHealthCheckType)
	}
	for name, value := range wanted {
		if attributes[name] == "" {
			attributes[name] = value
		}
	}
}

// creationAttributes are what a new listener gets where nothing is asked for; the owner of the CLB may change them afterwards.
func (b *builder) creationAttributes(protocol string) alicloud.Attributes {
	attributes := alicloud.Attributes{}
	for _, row := range annotation.ListenerTable() {
		if row.AtCreation && slices.Contains(row.Protocols, protocol) {
			attributes[row.Attribute] = Encode(row, row.Default)
		}
	}
	attributes[alicloud.AttributeScheduler] = b.in.DefaultScheduler()
	return attributes
}

// DefaultScheduler is that of listeners without the annotation: rr ignores the weights, which with externalTrafficPolicy Local are the
// numbers of endpoints.
func (in Input) DefaultScheduler() string {
	if in.Service.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal && !in.usesInterfaces() {
		return "wrr"
	}
	return "rr"
}

// defaultChanged reports whether the author of the Service has changed a field that chooses the default scheduler, and whether weights are
// numbers of endpoints.
func (in Input) defaultChanged() bool {
	return in.Scheduler != "" && in.Scheduler != in.DefaultScheduler()
}

// followDefault has a listener with the former default scheduler follow the default. One with another scheduler has it from somebody's
// hand.
func (b *builder) followDefault(key alicloud.ListenerKey, attributes alicloud.Attributes) {
	have := b.observed.Listener(key)
	if have == nil || !b.in.defaultChanged() || b.in.Params.Has(annotation.Scheduler) || b.in.Params.Refused(annotation.Scheduler) {
		return
	}
	if have.Attributes[alicloud.AttributeScheduler] == b.in.Scheduler {
		attributes[alicloud.AttributeScheduler] = b.in.DefaultScheduler()
	}
}

// Encode returns a value of an annotation as the API spells it.
func Encode(row annotation.Row, value string) string {
	if encoded, ok := row.Encode[value]; ok {
		return encoded
	}
	return value
}

// LegalFor leaves out values that one protocol does not have, so that the other ports of the Service still get them.
func LegalFor(protocol string, suffix annotation.Suffix, value string, params annotation.Params) bool {
	switch suffix {
	case annotation.Scheduler:
		switch value {
		case "sch", "tch":
			return protocol == alicloud.ProtocolTCP || protocol == alicloud.ProtocolUDP
		case "qch":
			return protocol == alicloud.ProtocolUDP
		}
	case annotation.HealthCheckURI, annotation.HealthCheckDomain, annotation.HealthCheckHTTPCode:
		kind := params.Get(annotation.HealthCheckType)
		return protocol != alicloud.ProtocolTCP || kind == "http" || kind == "" && params.Get(annotation.HealthCheck) == annotation.CheckNode
	case annotation.PersistenceTimeout:
		// As with the official CCM, the annotation is about TCP only.
		return protocol != alicloud.ProtocolUDP || params.SessionAffinity || params.Reverted[suffix]
	case annotation.ACLID, annotation.ACLType:
		return params.Get(annotation.ACLStatus) == "on"
	case annotation.ConnectionDrainTimeout:
		return params.Get(annotation.ConnectionDrain) == "on"
	}
	return true
}
