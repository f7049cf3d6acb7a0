package build

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/model"
)

// certificateWarning is how long before it expires a certificate is reported. Public authorities renew a month before the
// end.
const certificateWarning = 30 * 24 * time.Hour

// Certificate is what is known of a server certificate. One that could not be read is neither missing nor expired.
type Certificate struct {
	Read, Found bool
	Expires     time.Time
}

// NamedCertificates are those of the HTTPS listeners, sorted; without such a listener none.
func NamedCertificates(params annotation.Params) []string {
	if !strings.Contains(params.Get(annotation.ProtocolPort), alicloud.ProtocolHTTPS+":") {
		return nil
	}
	named := sets.New[string]()
	if params.Has(annotation.CertID) {
		named.Insert(params.Get(annotation.CertID))
	}
	for _, extension := range annotation.DomainExtensionsOf(params) {
		named.Insert(extension.CertificateID)
	}
	return sets.List(named)
}

// namedBy returns the annotation that names a certificate; where both do, the one of the listener itself.
func namedBy(params annotation.Params, id string) annotation.Suffix {
	if params.Get(annotation.CertID) == id {
		return annotation.CertID
	}
	return annotation.DomainExtensions
}

// checkCertificates reports certificates that do not serve. A listener that has one already keeps it; no listener gets one.
func (b *builder) checkCertificates() {
	if !slices.ContainsFunc(b.model.Listeners, func(l model.Listener) bool { return l.Protocol == alicloud.ProtocolHTTPS }) {
		return
	}
	inUse := b.observed.Certificates()
	for _, id := range NamedCertificates(b.in.Params) {
		state, used, by := b.in.Certificates[id], inUse.Has(id), namedBy(b.in.Params, id)
		switch {
		case !state.Read:
		case !state.Found && !used:
			b.withholdCertificate(id)
			b.addProblem(problem.ReasonInvalidAnnotation,
				"%s: certificate %q does not exist in the region; accepted: the ID of a server certificate of CLB", by, id)
		case !state.Found || state.Expires.IsZero():
		case !b.in.Now.Before(state.Expires) && !used:
			b.withholdCertificate(id)
			b.addProblem(problem.ReasonInvalidAnnotation, "%s: certificate %q expired on %s; accepted: a certificate that is valid", by, id,
				dateOf(state.Expires))
		case !b.in.Now.Before(state.Expires):
			b.addProblem(problem.ReasonCertificateExpired, "%s: certificate %q expired on %s and is still served", by, id, dateOf(state.Expires))
		case state.Expires.Sub(b.in.Now) < certificateWarning:
			b.addProblem(problem.ReasonCertificateExpiring, "%s: certificate %q expires on %s", by, id, dateOf(state.Expires))
		}
	}
}

// withholdCertificate lets no listener get the certificate: those that are there keep the one that they have.
func (b *builder) withholdCertificate(id string) {
	for i := range b.model.Listeners {
		listener := &b.model.Listeners[i]
		if listener.Attributes[alicloud.AttributeServerCertificateID] == id {
			delete(listener.Attributes, alicloud.AttributeServerCertificateID)
			listener.UpdateOnly = true
		}
		listener.Extensions = slices.DeleteFunc(listener.Extensions, func(e alicloud.DomainExtension) bool { return e.CertificateID == id })
	}
}

func dateOf(t time.Time) string { return t.UTC().Format(time.DateOnly) }
