package slb

import (
	"context"
	"sync"
	"time"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/instruments"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/build"
)

// certificateAge is how long what was read of a certificate counts: as long as a CLB is trusted by default.
const certificateAge = 10 * time.Minute

// certificates remembers the certificates of all Services: many share one.
type certificates struct {
	mu   sync.Mutex // guards byID
	byID map[string]driver.Part[build.Certificate]
}

// rememberedState returns what was read not long ago. A certificate that is missing may be uploaded at any time.
func (c *certificates) rememberedState(id string) (build.Certificate, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known, ok := c.byID[id]
	return known.Value, ok && (known.Value.Found || !known.Value.Read) && time.Since(known.ReadAt) < certificateAge
}

func (c *certificates) rememberState(id string, state build.Certificate) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byID == nil {
		c.byID = map[string]driver.Part[build.Certificate]{}
	}
	var read driver.Part[build.Certificate]
	read.Set(state)
	c.byID[id] = read
	observeCertificate(id, state)
	c.forgetUnnamed()
}

// certificateUnused is after what time a certificate that nobody asked for counts as unused: some periods of drift detection.
const certificateUnused = time.Hour

// forgetUnnamed drops what no Service names any more; c.mu is locked.
func (c *certificates) forgetUnnamed() {
	for id, known := range c.byID {
		if time.Since(known.ReadAt) > certificateUnused {
			delete(c.byID, id)
			observeCertificate(id, build.Certificate{})
		}
	}
}

// readCertificates returns the certificates that the annotations name. What cannot be read is no reason to stop: the cloud
// refuses what is wrong.
func (e *engine) readCertificates(ctx context.Context, params annotation.Params) map[string]build.Certificate {
	states := map[string]build.Certificate{}
	for _, id := range build.NamedCertificates(params) {
		state, ok := e.certificates.rememberedState(id)
		if !ok {
			found, exists, err := e.api.DescribeServerCertificate(ctx, id)
			state = build.Certificate{Read: err == nil, Found: exists, Expires: found.Expires}
			if err != nil {
				klog.FromContext(ctx).Info("Cannot read the certificate; no event warns before it expires", "certificate", id, "err", err)
			}
			e.certificates.rememberState(id, state)
		}
		states[id] = state
	}
	return states
}

var certificateExpiry = instruments.NewGaugeVec("slb", "certificate_expiration_timestamp_seconds",
	"Expiration time of a certificate that annotations of Services with a CLB name, in seconds since 1970. Absent for certificates of NLBs.",
	"certificate")

// Metrics are those of this package.
func Metrics() []metrics.Registerable { return []metrics.Registerable{certificateExpiry} }

var registerMetrics = sync.OnceFunc(func() { legacyregistry.MustRegister(Metrics()...) })

// observeCertificate shows when a certificate expires, as far as that is known.
func observeCertificate(id string, state build.Certificate) {
	if !state.Found || state.Expires.IsZero() {
		certificateExpiry.Delete(map[string]string{"certificate": id})
		return
	}
	certificateExpiry.WithLabelValues(id).Set(float64(state.Expires.Unix()))
}
