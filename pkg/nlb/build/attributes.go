package build

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/model"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// textOf, number and flag return the value of an annotation, nil where it is absent: then the setting stays as it is.
func (b *builder) textOf(suffix annotation.Suffix) *string {
	if value := b.in.Params.Get(suffix); value != "" {
		return &value
	}
	return nil
}

func (b *builder) numberOf(suffix annotation.Suffix) *int {
	if !b.in.Params.Has(suffix) {
		return nil
	}
	value := b.in.Params.Int(suffix, 0)
	return &value
}

func (b *builder) flagOf(suffix annotation.Suffix) *bool {
	if !b.in.Params.Has(suffix) {
		return nil
	}
	on := b.in.Params.Get(suffix) == "on"
	return &on
}

// listenerSettings sets what the annotations say of a listener.
func (b *builder) listenerSettings(l *model.Listener) {
	params := b.in.Params
	l.Cps, l.ProxyProtocol = b.numberOf(annotation.Cps), b.flagOf(annotation.ProxyProtocol)
	if idle := b.numberOf(annotation.IdleTimeout); idle != nil {
		switch {
		case l.Protocol != alicloud.NLBUDP || *idle <= annotation.MaxIdleOfUDP:
			l.IdleTimeout = idle
		case params.Reverted[annotation.IdleTimeout]:
			longest := annotation.MaxIdleOfUDP
			l.IdleTimeout = &longest
		case b.onlyUDP():
			b.addProblem(problem.ReasonAnnotationNoEffect, "%s: %d has no effect on a UDP listener, which takes at most %d", annotation.IdleTimeout,
				*idle, annotation.MaxIdleOfUDP)
		}
	}
	b.proxyProtocol(l)
	if l.Protocol == alicloud.NLBTCPSSL {
		b.buildTLS(l)
	}
	if params.RefusesListener(strings.ToLower(l.Protocol)) {
		l.Blocked = problem.ReasonInvalidAnnotation
	}
}

// onlyUDP reports whether the Service has no port for which the idle timeout could be meant.
func (b *builder) onlyUDP() bool {
	return !slices.ContainsFunc(b.in.Service.Spec.Ports, func(p corev1.ServicePort) bool { return p.Protocol != corev1.ProtocolUDP })
}

func (b *builder) proxyProtocol(l *model.Listener) {
	params := b.in.Params
	if !params.Has(annotation.PPV2EpID) && !params.Has(annotation.PPV2EpsID) && !params.Has(annotation.PPV2VPCID) ||
		params.Get(annotation.ProxyProtocol) != "on" {
		return
	}
	on := func(suffix annotation.Suffix) bool { return params.Get(suffix) == "on" }
	l.ProxyProtocolV2 = &alicloud.ProxyProtocolV2{PrivateLinkEpID: on(annotation.PPV2EpID), PrivateLinkEpsID: on(annotation.PPV2EpsID),
		VPCID: on(annotation.PPV2VPCID)}
}

func (b *builder) buildTLS(l *model.Listener) {
	params := b.in.Params
	if l.CertificateIDs = annotation.ListOf(params, annotation.CertID); len(l.CertificateIDs) == 0 {
		b.addProblem(problem.ReasonInvalidAnnotation, "%s: port %s is not served: a TCPSSL listener needs %s", annotation.ProtocolPort, l.Ports(),
			annotation.CertID)
		l.Blocked = problem.ReasonInvalidAnnotation
	}
	l.SecurityPolicyID, l.CAEnabled = b.textOf(annotation.TLSCipherPolicy), b.flagOf(annotation.CACert)
	if params.Get(annotation.CACert) == "on" {
		l.CACertificateIDs = annotation.ListOf(params, annotation.CACertID)
	}
	l.ALPNEnabled = b.flagOf(annotation.ALPN)
	if params.Get(annotation.ALPN) == "on" {
		l.ALPNPolicy = b.textOf(annotation.ALPNPolicy)
	}
	// The certificate of the listener is no additional one, too: the cloud would refuse all of them.
	l.Certificates = slices.DeleteFunc(annotation.ListOf(params, annotation.AdditionalCertIDs), func(id string) bool {
		return slices.Contains(l.CertificateIDs, id)
	})
	l.RemoveCertificates = b.in.RemoveCertificates
}
