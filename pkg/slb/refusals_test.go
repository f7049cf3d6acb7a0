package slb

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
)

// TestARefusedChargeNamesItsRule: the cloud answers with a code and the user finds annotation, value and what is accepted,
// but only where the annotations break the rule. What is corrected by that advice is then served.
func TestARefusedChargeNamesItsRule(t *testing.T) {
	t.Parallel()
	const bySpec, byBandwidth = `loadbalancer-instance-charge-type: "PayBySpec" is no longer sold`, `loadbalancer-charge-type: "paybybandwidth" may be refused`
	for _, test := range []struct {
		name, code  string
		annotations map[annotation.Suffix]string
		want        string
	}{
		{"by specification", "ShareSlbHaltSales", map[annotation.Suffix]string{annotation.InstanceChargeType: "PayBySpec"}, bySpec},
		{"by specification, another code", "OperationDenied", map[annotation.Suffix]string{annotation.InstanceChargeType: "PayBySpec"}, bySpec},
		{"by bandwidth", "InvalidParameter", map[annotation.Suffix]string{annotation.ChargeType: "paybybandwidth", annotation.Bandwidth: "5"},
			byBandwidth},
		{"by traffic", "InvalidParameter", nil, ""},
		{"something else", "OverQuota", map[annotation.Suffix]string{annotation.InstanceChargeType: "PayBySpec"}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			svc := testService("web", 80)
			annotate(svc, annotation.AddressType, "internet")
			for suffix, value := range test.annotations {
				annotate(svc, suffix, value)
			}
			w.put(svc)
			w.fault(map[string]any{"action": "CreateLoadBalancer", "code": test.code, "status": 400, "times": 0})
			for range 2 {
				if err := w.pass("web"); err == nil {
					t.Fatal("the pass does not report the refusal")
				}
			}
			events := w.newEvents()
			if len(events) != 1 || !strings.Contains(events[0], test.code) || !strings.Contains(events[0], "request ") ||
				!strings.Contains(events[0], test.want) {
				t.Errorf("events %q, want one with code, request and %q", events, test.want)
			}
			if explained := strings.Contains(strings.Join(events, ""), "accepted"); explained != (test.want != "") {
				t.Errorf("events %q: a rule is named: %v", events, explained)
			}
			if test.code == "OverQuota" {
				return // the next attempt is due later, see TestLastServiceWithoutCLB
			}
			w.clearFaults()
			w.mustPass("web")
		})
	}
}

// TestACloudThatRefusesCharges: the emulated cloud holds both rules; its answers lead to them, also where the annotations
// leave out that the CLB is paid by use, and what follows the advice is served.
func TestACloudThatRefusesCharges(t *testing.T) {
	t.Parallel()
	config := cloud.DefaultConfig()
	config.SpecSalesEnded, config.UsageByTrafficOnly = true, true
	w := newWorldIn(t, config)
	svc := testService("web", 80)
	annotate(svc, annotation.AddressType, "internet")
	annotate(svc, annotation.InstanceChargeType, "PayBySpec")
	annotate(svc, annotation.ChargeType, "paybybandwidth")
	w.put(svc)
	refused := func(what, advice string) {
		t.Helper()
		if err := w.pass("web"); err == nil || !strings.Contains(err.Error(), advice) {
			t.Errorf("%s: error %v, want %q in it", what, err, advice)
		}
	}
	refused("by specification", "accepted everywhere: PayByCLCU")
	w.change("web", func(svc *corev1.Service) { annotate(svc, annotation.InstanceChargeType, "PayByCLCU") })
	refused("by use and bandwidth", "accepted with it: paybytraffic")
	w.change("web", func(svc *corev1.Service) {
		delete(svc.Annotations, key(annotation.InstanceChargeType))
		annotate(svc, annotation.ChargeType, "paybytraffic")
	})
	w.mustPass("web")
	w.change("web", func(svc *corev1.Service) { annotate(svc, annotation.ChargeType, "paybybandwidth") })
	refused("changed later", "accepted with it: paybytraffic")
}

// TestLongNames: the marks of a Service may have more characters than older pages of the API accept. Where the cloud takes them, as the
// official CCM relies on, nothing is shortened; where it does not, the user learns what to shorten, once.
func TestLongNames(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("n", 63)
	t.Run("taken", func(t *testing.T) {
		t.Parallel()
		w := settled(t, testService(long, 80))
		w.change(long, func(svc *corev1.Service) { svc.Spec.Ports[0].Port = 81 })
		w.mustPass(long)
	})
	t.Run("refused", func(t *testing.T) {
		t.Parallel()
		config := cloud.DefaultConfig()
		config.Preset = "published"
		w := newWorldIn(t, config)
		w.put(testService(long, 80))
		for range 2 {
			if err := w.pass(long); err == nil {
				t.Fatal("the pass does not report the refusal")
			}
		}
		events := w.newEvents()
		if len(events) != 1 || !strings.Contains(events[0], long) || !strings.Contains(events[0], "up to 80 are accepted everywhere") {
			t.Errorf("events %q, want one with the name and what is accepted", events)
		}
		w.put(testService("short", 80))
		w.mustPass("short")
	})
}
