package slb

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// certificateWarning is how long before it expires a certificate is reported. Public authorities renew a month before the
// end.
const certificateWarning = 30 * 24 * time.Hour

// certificate is what is known of a server certificate. One that could not be read is neither missing nor expired.
type certificate struct {
	read, found bool
	expires     time.Time
}

// namedCertificates are those of the HTTPS listeners, sorted; without such a listener none.
func namedCertificates(params Params) []string {
	if !strings.Contains(params.Get(ProtocolPort), alicloud.ProtocolHTTPS+":") {
		return nil
	}
	named := sets.New[string]()
	if params.Has(CertID) {
		named.Insert(params.Get(CertID))
	}
	for _, extension := range extensionsOf(params) {
		named.Insert(extension.CertificateID)
	}
	return sets.List(named)
}

// certificates reports certificates that do not serve. A listener that has one already keeps it; no listener gets one.
func (b *builder) certificates() {
	if !slices.ContainsFunc(b.model.Listeners, func(l Listener) bool { return l.Protocol == alicloud.ProtocolHTTPS }) {
		return
	}
	for _, id := range namedCertificates(b.in.Params) {
		state, used := b.in.Certificates[id], b.in.UsedCertificates.Has(id)
		switch {
		case !state.read:
		case !state.found && !used:
			b.problem(ReasonInvalidAnnotation, "certificate %q does not exist in the region; accepted: the id of a server certificate of CLB", id)
		case !state.found || state.expires.IsZero():
		case !b.in.Now.Before(state.expires) && !used:
			b.problem(ReasonInvalidAnnotation, "certificate %q expired on %s; accepted: a certificate that is valid", id, dateOf(state.expires))
		case !b.in.Now.Before(state.expires):
			b.problem(ReasonCertificateExpired, "certificate %s expired on %s and is still served", id, dateOf(state.expires))
		case state.expires.Sub(b.in.Now) < certificateWarning:
			b.problem(ReasonCertificateExpiring, "certificate %s expires on %s", id, dateOf(state.expires))
		}
	}
}

func dateOf(t time.Time) string { return t.UTC().Format(time.DateOnly) }
