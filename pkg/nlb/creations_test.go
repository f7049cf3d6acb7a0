package nlb

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service"
)

const (
	// wantNLBs Services want an NLB, in an account that may have haveNLBs.
	wantNLBs, haveNLBs = 100, 60
	// mostRefused is how many creations the cloud may refuse in an hour.
	mostRefused = 30
)

// TestMoreServicesThanNLBs: while the quota of NLBs is used up, the Services that have none take turns asking for one. One that is deleted
// makes room for the next one at once, and all are served soon after the quota was raised.
func TestMoreServicesThanNLBs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		account := cloud.DefaultConfig()
		account.Quotas = cloud.Limits{NLBs: haveNLBs}
		s := newStormOn(t, emulator.Options{Config: account, Settle: settle, RateLimits: emulator.RateLimitsPublished}, nil, 24*time.Hour)
		s.joins("a", 1)
		for i := range wantNLBs {
			s.put(newService(fmt.Sprintf("s%03d", i), testkit.TCP(80)))
			synctest.Wait() // the fake API server's watches hold no more than a hundred events
		}
		time.Sleep(10 * time.Minute)
		s.wantServed(haveNLBs)
		s.account.NewCalls()
		time.Sleep(time.Hour)
		s.wantServed(haveNLBs)
		s.fewRefused()

		s.change("s000", func(svc *corev1.Service) { svc.Spec.Type = corev1.ServiceTypeClusterIP })
		time.Sleep(time.Minute)
		synctest.Wait()
		s.wantServed(haveNLBs)

		s.account.Change(func(s *emulator.Settings) { s.Quotas.NLBs = wantNLBs })
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		s.wantServed(wantNLBs - 1)
	})
}

// wantServed checks how many Services have addresses, and that the others say why they have none.
func (s *storm) wantServed(want int) {
	s.t.Helper()
	served := 0
	for i := range wantNLBs {
		svc := s.get(fmt.Sprintf("s%03d", i))
		if svc.Spec.Type != corev1.ServiceTypeLoadBalancer {
			continue
		}
		if len(svc.Status.LoadBalancer.Ingress) > 0 {
			served++
			continue
		}
		c := meta.FindStatusCondition(svc.Status.Conditions, service.ConditionSynced)
		if c == nil || c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, "QuotaExceeded") {
			s.t.Errorf("%s waits for an NLB with the condition %+v", svc.Name, c)
		}
	}
	if served != want {
		s.t.Errorf("%d Services have addresses, want %d", served, want)
	}
}

// fewRefused checks how many creations the cloud refused.
func (s *storm) fewRefused() {
	s.t.Helper()
	refused := 0
	for _, call := range s.account.Unread() {
		if call.Action == "CreateLoadBalancer" {
			refused++
		}
	}
	s.t.Logf("%d creations were refused in an hour", refused)
	if refused == 0 || refused > mostRefused {
		s.t.Errorf("%d creations were refused in an hour, want 1 to %d", refused, mostRefused)
	}
}

// TestRefusedNLBIsAskedForLessOften: after each refusal, a pass reads whether there is an NLB. Attempts are two minutes apart in the end
// all the same.
func TestRefusedNLBIsAskedForLessOften(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStorm(t)
		s.joins("a", 1)
		s.account.Fault(`{"action":"CreateLoadBalancer","code":"Forbidden.RAM","status":403,"times":0}`)
		s.put(newService("web", testkit.TCP(80)))
		time.Sleep(10 * time.Minute)
		s.account.NewCalls()
		time.Sleep(time.Hour)
		s.fewRefused()
		s.account.ClearFaults()
		time.Sleep(2*time.Minute + 30*time.Second)
		synctest.Wait()
		if svc := s.get("web"); len(svc.Status.LoadBalancer.Ingress) == 0 {
			t.Errorf("status %+v, want an address", svc.Status)
		}
	})
}
