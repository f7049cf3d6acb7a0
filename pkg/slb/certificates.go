package slb

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

const (
	// certificateAge is how long what was read of a certificate counts: as long as what is known of a CLB.
	certificateAge = defaultResyncPeriod
	// certificateWarning is how long before it expires a certificate is told about. Public authorities renew a month
	// before the end.
	certificateWarning = 30 * 24 * time.Hour
)

// certificate is what is known of a server certificate. One that could not be read is neither missing nor expired.
type certificate struct {
	read, found bool
	expires     time.Time
}

// certificates remembers the certificates of all Services: many share one.
type certificates struct {
	mu   sync.Mutex // guards byID
	byID map[string]rememberedCertificate
}

type rememberedCertificate struct {
	certificate
	at time.Time
}

// remembered returns what was read not long ago. A certificate that is missing may be uploaded at any time.
func (c *certificates) remembered(id string) (certificate, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known, ok := c.byID[id]
	return known.certificate, ok && (known.found || !known.read) && time.Since(known.at) < certificateAge
}

func (c *certificates) remember(id string, state certificate) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byID == nil {
		c.byID = map[string]rememberedCertificate{}
	}
	c.byID[id] = rememberedCertificate{state, time.Now()}
}

// readCertificates returns the certificates that the annotations name. What cannot be read is no reason to stop: the cloud
// refuses what is wrong.
func (r *Reconciler) readCertificates(ctx context.Context, params Params) map[string]certificate {
	states := map[string]certificate{}
	for _, id := range namedCertificates(params) {
		state, ok := r.certificates.remembered(id)
		if !ok {
			found, exists, err := r.opts.API.DescribeServerCertificate(ctx, id)
			state = certificate{read: err == nil, found: exists, expires: found.Expires}
			if err != nil {
				klog.FromContext(ctx).Info("Certificate cannot be read; it is not told when it expires", "certificate", id, "err", err)
			}
			r.certificates.remember(id, state)
		}
		states[id] = state
	}
	return states
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

// usedCertificates are those of the listeners that are there.
func usedCertificates(actual *Model) sets.Set[string] {
	used := sets.New[string]()
	if actual == nil {
		return used
	}
	for i := range actual.Listeners {
		used.Insert(actual.Listeners[i].Attributes["ServerCertificateId"])
		for _, extension := range actual.Listeners[i].Extensions {
			used.Insert(extension.CertificateID)
		}
	}
	return used
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
