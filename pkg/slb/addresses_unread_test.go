package slb

import (
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// TestTheLastElasticAddressStays: what clients know is shown for as long as nobody knows better, also after a restart. One empty answer
// proves nothing.
func TestTheLastElasticAddressStays(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]map[string]any{
		"throttled":   {"code": "Throttling.User", "status": 400},
		"forbidden":   {"code": "Forbidden.RAM", "status": 403},
		"unavailable": {"code": "ServiceUnavailable", "status": 503},
		"empty":       {"body": `{"RequestId":"5F0A5F6E-0000-0000-0000-000000000000","PageNumber":1,"PageSize":100,"TotalCount":0,"EipAddresses":{"EipAddress":[]}}`},
	} {
		for _, restart := range []bool{false, true} {
			t.Run(name+map[bool]string{true: ", restart"}[restart], func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					w := settled(t, testService("web", 80))
					address := w.bindEIP(w.onlyCLB())
					w.change("web", func(svc *corev1.Service) { annotate(svc, annotation.ExternalIPType, "eip") })
					w.mustPass("web")
					if restart {
						w.restart()
					} else {
						w.drift("web")
					}
					rule := maps.Clone(fault)
					rule["action"], rule["times"] = "DescribeEipAddresses", 1
					w.fault(rule)
					wait, err := w.Reconcile(t.Context(), w.get("web"))
					if shown := w.shown("web"); err != nil || w.faultHits() != 1 || !slices.Equal(shown, []string{address}) {
						t.Fatalf("error %v, %d faults, shown %v; want %s", err, w.faultHits(), shown, address)
					}
					if wait > eipWait {
						t.Errorf("the next read is due after %s", wait)
					}
					w.passesFor("web", time.Hour)
					if shown := w.shown("web"); !slices.Equal(shown, []string{address}) {
						t.Errorf("shown %v, want %s", shown, address)
					}
				})
			})
		}
	}
}

// TestAnElasticAddressThatIsGone: answers that lack it twice are believed.
func TestAnElasticAddressThatIsGone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := settled(t, testService("web", 80))
		own, address := w.shown("web"), w.bindEIP(w.onlyCLB())
		w.change("web", func(svc *corev1.Service) { annotate(svc, annotation.ExternalIPType, "eip") })
		w.mustPass("web")
		var eips struct {
			EipAddresses struct {
				EipAddress []struct{ AllocationId string }
			} //nolint:revive // names on the wire
		}
		w.raw(api.VersionVPC, "DescribeEipAddresses", map[string]string{"EipAddress": address}, &eips)
		w.raw(api.VersionVPC, "UnassociateEipAddress", map[string]string{"AllocationId": eips.EipAddresses.EipAddress[0].AllocationId}, nil)
		w.passesFor("web", time.Hour)
		if shown := w.shown("web"); !slices.Equal(shown, own) {
			t.Errorf("shown %v, want the CLB's own %v", shown, own)
		}
		w.mustReport(problem.ReasonFailedSetEIPAddress)
	})
}

// TestNoElasticAddressCostsFewReads: a CLB that never gets one is asked at intervals that grow.
func TestNoElasticAddressCostsFewReads(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		svc := testService("web", 80)
		annotate(svc, annotation.ExternalIPType, "eip")
		w := settled(t, svc)
		reads := slices.DeleteFunc(w.passesOver("web", 24*time.Hour), func(action string) bool { return action != "DescribeEipAddresses" })
		if len(reads) > 200 {
			t.Errorf("%d reads in a day", len(reads))
		}
		address := w.bindEIP(w.onlyCLB())
		w.passesOver("web", maxEIPWait)
		if shown := w.shown("web"); !slices.Equal(shown, []string{address}) {
			t.Errorf("shown %v, want %s", shown, address)
		}
	})
}
