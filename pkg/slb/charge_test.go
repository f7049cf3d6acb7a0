package slb

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/deploy"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/model"
)

// TestChargeTypeIsAskedForOnce: until midnight the cloud reads back the old charge type, which is no drift. Going back on
// the same day is a change again.
func TestChargeTypeIsAskedForOnce(t *testing.T) {
	t.Parallel()
	svc := testService("web", 80)
	annotate(svc, annotation.AddressType, "internet")
	annotate(svc, annotation.ChargeType, "paybytraffic")
	w := settled(t, svc)
	pass := func(what string, want []string) {
		t.Helper()
		w.drift("web")
		w.mustPass("web")
		if diff := cmp.Diff(want, writesOf(w.calls())); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	charge := func(value string) {
		w.change("web", func(svc *corev1.Service) { annotate(svc, annotation.ChargeType, value) })
	}
	annotateBandwidth := func(value string) {
		w.change("web", func(svc *corev1.Service) { annotate(svc, annotation.Bandwidth, value) })
	}
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
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, deploy.BillingZone)
	pending := deploy.AskedCharge("lb-1", "paybybandwidth", noon)
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
		if pending.Correct(&lb, test.now); lb.InternetChargeType != test.want {
			t.Errorf("%s: %s, want %s", test.name, lb.InternetChargeType, test.want)
		}
	}
}

// TestRefusedAttributeIsNotRemembered: an attribute that the cloud refused was never set; when its annotation goes, nothing
// is set in its place. One that may have been set goes back to its default.
func TestRefusedAttributeIsNotRemembered(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, action, code string
		suffix             annotation.Suffix
		value              string
		reverts            bool
	}{
		{"instance charge type", "ModifyLoadBalancerInstanceChargeType", "OperationDenied", annotation.InstanceChargeType, "PayByCLCU", false},
		{"specification", "ModifyLoadBalancerInstanceSpec", "OperationDenied", annotation.Spec, "slb.s2.small", false},
		{"internet charge type", "ModifyLoadBalancerInternetSpec", "OperationDenied", annotation.ChargeType, "paybytraffic", false},
		{"name", "SetLoadBalancerName", "InvalidParameter", annotation.Name, "shop", false},
		{"delete protection", "SetLoadBalancerDeleteProtection", "OperationDenied", annotation.DeleteProtection, "on", false},
		{"modification protection", "SetLoadBalancerModificationProtection", "OperationDenied", annotation.ModificationProtection,
			"ConsoleProtection", false},
		{"no clear answer", "SetLoadBalancerModificationProtection", "InternalError", annotation.ModificationProtection, "ConsoleProtection",
			true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			threeNodes(w)
			svc := testService("web", 80)
			annotate(svc, annotation.AddressType, "internet")
			annotate(svc, annotation.InstanceChargeType, "PayBySpec")
			if test.suffix == annotation.InstanceChargeType {
				delete(svc.Annotations, key(annotation.InstanceChargeType))
			}
			w.changedCLB(svc)
			w.put(svc)
			w.converge("web")
			w.change("web", func(svc *corev1.Service) {
				annotate(svc, test.suffix, test.value)
				annotate(svc, annotation.HealthyThreshold, "5") // there is something to remember beside it
			})
			w.fault(map[string]any{"action": test.action, "code": test.code, "status": 400, "times": 2})
			for range 2 {
				if err := w.pass("web"); err == nil {
					t.Fatal("the pass does not report the refusal")
				}
			}
			if text := w.recorded("web"); !strings.Contains(text, string(annotation.HealthyThreshold)) {
				t.Errorf("recorded %q, want what was applied beside the refused attribute", text)
			}
			w.change("web", func(svc *corev1.Service) { delete(svc.Annotations, key(test.suffix)) })
			w.restart()
			w.calls()
			w.converge("web")
			if called := slices.Contains(w.calls(), test.action); called != test.reverts {
				t.Errorf("%s is called: %v, want %v", test.action, called, test.reverts)
			}
		})
	}
}

// changedCLB makes a CLB of ours each attribute of which somebody has set to something that is no default.
func (w *world) changedCLB(svc *corev1.Service) {
	w.t.Helper()
	if _, err := w.api.CreateLoadBalancer(w.t.Context(), alicloud.LoadBalancer{
		Name: "by-hand", AddressType: alicloud.AddressInternet, InstanceChargeType: model.PayBySpec, Spec: "slb.s2.medium",
		InternetChargeType: model.PayByBandwidth, Bandwidth: 5, DeleteProtection: "off", ModificationProtection: alicloud.NonProtection,
		Tags: mark.Tags(svc, testCluster),
	}, ""); err != nil {
		w.t.Fatal(err)
	}
}
