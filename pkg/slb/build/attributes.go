package build

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
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
		attributes[alicloud.AttributeScheduler] = b.defaultScheduler()
	}
	b.restrict(attributes)
	return attributes
}

// creationAttributes are what a new listener gets where nothing is asked for; the owner of the CLB may change them afterwards.
func (b *builder) creationAttributes(protocol string) alicloud.Attributes {
	attributes := alicloud.Attributes{}
	for _, row := range annotation.ListenerTable() {
		if row.AtCreation && slices.Contains(row.Protocols, protocol) {
			attributes[row.Attribute] = Encode(row, row.Default)
		}
	}
	attributes[alicloud.AttributeScheduler] = b.defaultScheduler()
	return attributes
}

// defaultScheduler: rr ignores the weights, which with externalTrafficPolicy Local are the numbers of endpoints.
func (b *builder) defaultScheduler() string {
	if b.in.Service.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal && !b.eni() {
		return "wrr"
	}
	return "rr"
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
		return protocol != alicloud.ProtocolTCP || params.Get(annotation.HealthCheckType) == "http"
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
