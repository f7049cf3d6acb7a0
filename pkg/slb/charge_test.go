package slb

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// TestChargeTypeIsAskedForOnce: until midnight the cloud reads back the old charge type, which is no drift. Going back on
// the same day is a change again.
func TestChargeTypeIsAskedForOnce(t *testing.T) {
	t.Parallel()
	svc := testService("web", 80)
	annotate(svc, AddressType, "internet")
	annotate(svc, ChargeType, "paybytraffic")
	w := settled(t, svc)
	pass := func(what string, want []string) {
		t.Helper()
		w.drift("web")
		w.mustPass("web")
		if diff := cmp.Diff(want, writesOf(w.calls())); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	charge := func(value string) { w.change("web", func(svc *corev1.Service) { annotate(svc, ChargeType, value) }) }
	annotateBandwidth := func(value string) { w.change("web", func(svc *corev1.Service) { annotate(svc, Bandwidth, value) }) }
	write := []string{"ModifyLoadBalancerInternetSpec"}

	charge("paybybandwidth")
	pass("changed", write)
	pass("read back old", nil)
	annotateBandwidth("9")
	pass("another bandwidth", write)
	pass("bandwidth read back", nil)
	charge("paybytraffic")
	pass("changed back", write)
	pass("settled", nil)
}

func TestPendingChargeEndsWithTheDay(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, billingZone)
	pending := askedCharge("lb-1", "paybybandwidth", noon)
	for _, test := range []struct {
		name, id string
		now      time.Time
		want     string
	}{
		{"same day", "lb-1", noon.Add(11 * time.Hour), "paybybandwidth"},
		{"seen from another zone", "lb-1", noon.Add(11 * time.Hour).UTC(), "paybybandwidth"},
		{"shortly after midnight", "lb-1", noon.Add(12*time.Hour + time.Minute), "paybybandwidth"},
		{"next morning", "lb-1", noon.Add(18 * time.Hour), "paybytraffic"},
		{"another CLB", "lb-2", noon, "paybytraffic"},
	} {
		lb := alicloud.LoadBalancer{ID: test.id, InternetChargeType: "paybytraffic"}
		if pending.correct(&lb, test.now); lb.InternetChargeType != test.want {
			t.Errorf("%s: %s, want %s", test.name, lb.InternetChargeType, test.want)
		}
	}
}
