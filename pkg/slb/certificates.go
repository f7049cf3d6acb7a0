package slb

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
)

const (
	// certificateAge is how long what was read of a certificate counts: as long as what is known of a CLB.
	certificateAge = defaultResyncPeriod
)

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
