package slb

import (
	"sync"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/instruments"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/build"
)

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
