package slb

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestARefusedChargeNamesItsRule: the cloud answers with a code and the user finds annotation, value and what is accepted,
// but only where the annotations break the rule. What is mended by that advice is then served.
func TestARefusedChargeNamesItsRule(t *testing.T) {
	t.Parallel()
	const bySpec, byBandwidth = `loadbalancer-instance-charge-type: "PayBySpec" is no longer sold`, `loadbalancer-charge-type: "paybybandwidth" may be refused`
	for _, test := range []struct {
		name, code  string
		annotations map[Suffix]string
		want        string
	}{
		{"by specification", "ShareSlbHaltSales", map[Suffix]string{InstanceChargeType: "PayBySpec"}, bySpec},
		{"by specification, another code", "OperationDenied", map[Suffix]string{InstanceChargeType: "PayBySpec"}, bySpec},
		{"by bandwidth", "InvalidParameter", map[Suffix]string{ChargeType: "paybybandwidth", Bandwidth: "5"}, byBandwidth},
		{"by traffic", "InvalidParameter", nil, ""},
		{"something else", "OverQuota", map[Suffix]string{InstanceChargeType: "PayBySpec"}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			svc := testService("web", 80)
			annotate(svc, AddressType, "internet")
			for suffix, value := range test.annotations {
				annotate(svc, suffix, value)
			}
			w.put(svc)
			w.fault(map[string]any{"action": "CreateLoadBalancer", "code": test.code, "status": 400, "times": 0})
			for range 2 {
				if err := w.pass("web"); err == nil {
					t.Fatal("the pass does not tell of the refusal")
				}
			}
			events := w.told()
			if len(events) != 1 || !strings.Contains(events[0], test.code) || !strings.Contains(events[0], "request ") || !strings.Contains(events[0], test.want) {
				t.Errorf("events %q, want one with code, request and %q", events, test.want)
			}
			if explained := strings.Contains(strings.Join(events, ""), "accepted"); explained != (test.want != "") {
				t.Errorf("events %q: a rule is named: %v", events, explained)
			}
			w.clearFaults()
			w.mustPass("web")
		})
	}
}

// TestARefusedChangeOfChargeNamesItsRule: the CLB is paid by use, which the annotations need not say.
func TestARefusedChangeOfChargeNamesItsRule(t *testing.T) {
	t.Parallel()
	svc := testService("web", 80)
	annotate(svc, AddressType, "internet")
	w := settled(t, svc)
	w.told()
	w.fault(map[string]any{"action": "ModifyLoadBalancerInternetSpec", "code": "OperationDenied.PayByCLCU", "status": 400, "times": 0})
	w.change("web", func(svc *corev1.Service) {
		annotate(svc, ChargeType, "paybybandwidth")
		annotate(svc, Bandwidth, "5")
	})
	if err := w.pass("web"); err == nil || !strings.Contains(err.Error(), "accepted with it: paybytraffic") {
		t.Errorf("error %v, want the rule in it", err)
	}
}
