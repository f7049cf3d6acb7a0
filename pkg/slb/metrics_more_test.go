package slb

import (
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/testutil"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/build"
)

// TestDriftIsCounted: what somebody changed by hand is counted when a read for drift finds it.
func TestDriftIsCounted(t *testing.T) {
	t.Parallel()
	var drift *metrics.CounterVec
	for _, m := range service.Metrics() {
		if m.FQName() == "alicloud_slb_drift_found_total" {
			drift, _ = m.(*metrics.CounterVec)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		threeNodes(w)
		w.put(testService("web", 80))
		w.mustPass("web")
		time.Sleep(15 * time.Minute) // the first reads after a write are no reads for drift alone
		w.mustPass("web")
		w.deleteListener(w.get("web").Labels[driver.LabelLoadBalancerID], 80)
		before := counted(t, drift.WithLabelValues(Product.Name))
		time.Sleep(15 * time.Minute)
		w.mustPass("web")
		if len(w.listenerKeys()) != 1 {
			t.Fatalf("listeners %v: the drift was not found", w.listenerKeys())
		}
		if after := counted(t, drift.WithLabelValues(Product.Name)); after <= before {
			t.Errorf("drift found %v times after %v times", after, before)
		}
	})
}

// TestCertificateExpiryInMetrics: a scrape shows when each certificate expires that a Service names, until none does.
func TestCertificateExpiryInMetrics(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := certificates{}
		expires := time.Now().Add(48 * time.Hour)
		shown := func() float64 {
			t.Helper()
			value, err := testutil.GetGaugeMetricValue(certificateExpiry.WithLabelValues(t.Name()))
			if err != nil {
				t.Fatal(err)
			}
			return value
		}
		registerMetrics()
		c.rememberState(t.Name(), build.Certificate{Read: true, Found: true, Expires: expires})
		if got := shown(); got != float64(expires.Unix()) {
			t.Errorf("expiry %v, want %v", got, expires.Unix())
		}
		time.Sleep(2 * certificateUnused)
		c.rememberState(t.Name()+"/other", build.Certificate{Read: true, Found: true, Expires: expires})
		if certificateExpiry.Delete(map[string]string{"certificate": t.Name()}) {
			t.Error("a certificate is shown that nobody names")
		}
	})
	w := newWorld(t)
	threeNodes(w)
	svc := testService("web", 443)
	annotate(svc, annotation.ProtocolPort, "https:443")
	annotate(svc, annotation.CertID, "cert-expiring")
	w.put(svc)
	w.mustPass("web")
	value, err := testutil.GetGaugeMetricValue(certificateExpiry.WithLabelValues("cert-expiring"))
	if left := time.Until(time.Unix(int64(value), 0)); err != nil || left <= 0 || left > 2*time.Hour {
		t.Errorf("expiry in %s, error %v, want about an hour", left, err)
	}
}
