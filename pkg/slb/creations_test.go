package slb

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/config"
)

const (
	// wantCLBs Services want a CLB, in an account that may have haveCLBs.
	wantCLBs, haveCLBs = 100, 60
	// mostRefused is how many creations the cloud may refuse in an hour.
	mostRefused = 30
)

// TestMoreServicesThanCLBs: while the quota of CLBs is used up, the Services that have none take turns asking for one. One that is deleted
// makes room for the next one at once, and all are served soon after the quota was raised.
func TestMoreServicesThanCLBs(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleetIn(t, cloud.Limits{LoadBalancers: haveCLBs, LBsPerInstance: 10_000}, config.Config{})
		defer f.stop()
		f.createFleetNode("a")
		for i := range wantCLBs {
			f.put(testService(fmt.Sprintf("s%03d", i), 80))
			synctest.Wait() // the fake API server's watches hold no more than a hundred events
		}
		time.Sleep(5 * time.Minute)
		f.wantServed(haveCLBs)
		f.emulator.NewCalls()
		time.Sleep(time.Hour)
		f.wantServed(haveCLBs)
		f.fewRefused()

		f.change("s000", func(svc *corev1.Service) { svc.Spec.Type = corev1.ServiceTypeClusterIP })
		time.Sleep(5 * time.Second)
		synctest.Wait()
		f.wantServed(haveCLBs)

		f.emulator.Change(func(s *emulator.Settings) { s.Quotas.LoadBalancers = wantCLBs })
		time.Sleep(4 * time.Minute)
		synctest.Wait()
		f.wantServed(wantCLBs - 1)
	})
}

// TestLastServiceWithoutCLB: the only Service that waits for a CLB takes its turns as well, however often its endpoints change.
func TestLastServiceWithoutCLB(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleetIn(t, cloud.Limits{LoadBalancers: 1}, config.Config{})
		defer func() { f.stop() }()
		const nodes, minutes, most = 4, 10, 5
		for i := range nodes {
			f.createFleetNode(nodeName(i))
		}
		f.put(testService("first", 80))
		time.Sleep(time.Minute)
		svc := testService("web", 80)
		svc.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
		f.setPods(svc, podsOn(0))
		f.put(svc)
		time.Sleep(minutes * time.Minute)
		f.emulator.NewCalls()
		for i := range minutes * 60 / 2 {
			f.setPods(svc, podsOn(i%nodes))
			time.Sleep(2 * time.Second)
		}
		if n := len(f.writes("CreateLoadBalancer")); n == 0 || n > most {
			t.Errorf("%d creations were refused in %d minutes, want 1 to %d", n, minutes, most)
		}
		f.change("first", func(svc *corev1.Service) { svc.Spec.Type = corev1.ServiceTypeClusterIP })
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if len(f.get("web").Status.LoadBalancer.Ingress) == 0 {
			t.Error("the Service has no address after a CLB was deleted")
		}
	})
}

// wantServed checks how many Services have addresses, and that the others say why they have none.
func (f *fleet) wantServed(want int) {
	f.t.Helper()
	served := 0
	for i := range wantCLBs {
		svc := f.get(fmt.Sprintf("s%03d", i))
		if svc.Spec.Type != corev1.ServiceTypeLoadBalancer {
			continue
		}
		if len(svc.Status.LoadBalancer.Ingress) > 0 {
			served++
			continue
		}
		if c := f.synced(svc.Name); c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, "QUOTA_EXCEEDED") {
			f.t.Errorf("%s waits for a CLB with the condition %+v", svc.Name, c)
		}
	}
	if served != want {
		f.t.Errorf("%d Services have addresses, want %d", served, want)
	}
}

// fewRefused checks how many creations the cloud refused.
func (f *fleet) fewRefused() {
	f.t.Helper()
	refused := len(f.writes("CreateLoadBalancer"))
	f.t.Logf("%d creations were refused in an hour", refused)
	if refused == 0 || refused > mostRefused {
		f.t.Errorf("%d creations were refused in an hour, want 1 to %d", refused, mostRefused)
	}
}
