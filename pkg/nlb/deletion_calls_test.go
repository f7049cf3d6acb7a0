package nlb

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
)

// TestCallsOfDeletions: what it takes to delete Services with all that they have, of how many calls the cloud answers that something does
// not exist, or refuses them for their number, and how long the last one takes.
func TestCallsOfDeletions(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name            string
		services, stay  int
		existing, group bool
		calls           int
		took            time.Duration
	}{
		{"one of its own", 1, 0, false, false, 10, 5 * time.Second},
		{"20 of their own", 20, 0, false, false, 150, 5 * time.Second},
		{"one from an existing one", 1, 0, true, false, 6, 5 * time.Second},
		{"20 from an existing one", 20, 0, true, false, 120, time.Minute},
		{"one of a group", 1, 1, false, true, 6, 5 * time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				cfg := cloud.DefaultConfig()
				cfg.Quotas = cloud.Limits{NLBs: 100, NLBGroupsPerServer: 10_000}
				s := newStormOn(t, emulator.Options{Config: cfg, RateLimits: emulator.RateLimitsPublished}, nil, 24*time.Hour)
				s.joins("a", 3)
				var id string
				if test.existing {
					id = s.existing("by-hand")
				}
				for i := range test.services + test.stay {
					svc := newService(fmt.Sprintf("s%03d", i), testkube.TCP(int32(80+i))) //nolint:gosec // few
					if test.existing {
						without(annotation.ZoneMaps)(svc)
						with(annotation.LoadBalancerID, id)(svc)
						with(annotation.ForceOverrideListeners, "true")(svc)
					}
					if test.group {
						with(annotation.Group, "edge")(svc)
					}
					s.put(svc)
				}
				s.rest()
				s.at(time.Minute)
				s.account.NewCalls()
				began := time.Now()
				for i := range test.services {
					s.deleteService(fmt.Sprintf("s%03d", i))
				}
				took := s.untilReleased(began, test.stay)
				time.Sleep(10 * time.Second)
				calls := s.account.NewCalls()
				for _, call := range calls {
					if call.Code != "" {
						t.Errorf("%s refused: %s", call.Action, call.Code)
					}
				}
				if len(calls) > test.calls || took > test.took {
					t.Errorf("%d calls in %s, want %d in %s", len(calls), took, test.calls, test.took)
				}
				counts := map[string]int{}
				for _, call := range calls {
					counts[call.Action]++
					if test.services == 1 {
						t.Logf("%s %s %s %v", call.Time.Sub(began), call.Action, call.Code, call.Parameters)
					}
				}
				t.Logf("%d calls in %s: %v", len(calls), took, counts)
			})
		})
	}
}

// deleteService asks for the deletion of a Service. The fake API server would delete it at once.
func (s *storm) deleteService(name string) {
	s.t.Helper()
	svc, now := s.get(name), metav1.Now()
	svc.DeletionTimestamp = &now
	testkit.Must(s.kube.CoreV1().Services(svc.Namespace).Update(s.t.Context(), svc, metav1.UpdateOptions{}))(s.t)
}

// untilReleased waits until only so many Services have finalizers, and returns how long that took.
func (s *storm) untilReleased(began time.Time, stay int) time.Duration {
	s.t.Helper()
	for ; time.Since(began) < 10*time.Minute; time.Sleep(100 * time.Millisecond) {
		held := 0
		all := testkit.Must(s.kube.CoreV1().Services(testkube.Namespace).List(s.t.Context(), metav1.ListOptions{}))(s.t)
		for i := range all.Items {
			held += min(1, len(all.Items[i].Finalizers))
		}
		if held <= stay {
			return time.Since(began)
		}
	}
	s.t.Error("Services still have finalizers")
	return time.Since(began)
}

// TestCallsOfALife: a Service with two ports is made and deleted.
func TestCallsOfALife(t *testing.T) {
	t.Parallel()
	const most = 24
	synctest.Test(t, func(t *testing.T) {
		s := newStormOn(t, emulator.Options{Config: cloud.DefaultConfig(), RateLimits: emulator.RateLimitsPublished}, nil, 24*time.Hour)
		s.joins("a", 3)
		s.rest()
		s.account.NewCalls()
		began := time.Now()
		s.put(newService("web", testkube.TCP(80), testkube.TCP(81)))
		time.Sleep(2 * time.Minute)
		s.deleteService("web")
		s.untilReleased(time.Now(), 0)
		calls := s.account.NewCalls()
		for _, call := range calls {
			t.Logf("%s %s %s %v", call.Time.Sub(began), call.Action, call.Code, call.Parameters)
		}
		if len(calls) > most {
			t.Errorf("%d calls, want %d", len(calls), most)
		}
	})
}
