package nlb

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
)

// countWakes starts a new process that knows its Services, and counts how often one of them wakes another one from then on.
func (s *storm) countWakes() *atomic.Int64 {
	s.t.Helper()
	s.stop()
	s.start()
	wakes, wake := &atomic.Int64{}, s.engine.shared.Wake
	s.engine.shared.Wake = func(svc types.NamespacedName) {
		if wakes.Add(1) < 1000 { // more would not come to an end, and time stands still meanwhile
			wake(svc)
		}
	}
	time.Sleep(time.Minute)
	wakes.Store(0)
	return wakes
}

// TestSwappedPortsOfAGroup: two Services of a group swap their ports while the cloud deletes no listener. They do not wake each other
// without end.
func TestSwappedPortsOfAGroup(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]string{
		"refused":   `{"times":0,"action":"DeleteListener","code":"Forbidden.RAM","status":403}`,
		"throttled": `{"times":0,"action":"DeleteListener","code":"Throttling.User","status":400}`,
		"busy":      `{"times":0,"action":"DeleteListener","code":"IncorrectStatus.loadBalancer","status":400}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newStorm(t)
				s.joins("", 2)
				s.put(grouped("shop", "edge", 1, testkit.TCP(83)))
				s.put(grouped("web", "edge", 2, testkit.TCP(82)))
				s.rest()
				wakes := s.countWakes()
				s.account.Fault(fault)
				s.account.NewCalls()
				s.change("shop", func(svc *corev1.Service) { svc.Spec.Ports[0].Port = 82 })
				s.change("web", func(svc *corev1.Service) { svc.Spec.Ports[0].Port = 83 })
				time.Sleep(10 * time.Second)
				if wakes := wakes.Load(); wakes > 50 {
					t.Errorf("%d passes were woken in 10 s, and %d calls made", wakes, len(s.account.NewCalls()))
				}
			})
		})
	}
}

// TestSwappedPortsWhileAJobRuns: the same, without any fault: a Service gives up two ports one after the other, and meanwhile waits for a
// job.
func TestSwappedPortsWhileAJobRuns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStorm(t)
		s.joins("", 2)
		s.put(grouped("shop", "edge", 1, testkit.TCP(81, 82)))
		s.put(grouped("web", "edge", 2, testkit.TCP(80)))
		s.rest()
		wakes := s.countWakes()
		s.change("shop", func(svc *corev1.Service) { svc.Spec.Ports = svc.Spec.Ports[:1]; svc.Spec.Ports[0].Port = 80 })
		s.change("web", func(svc *corev1.Service) { svc.Spec.Ports[0].Port = 82 })
		time.Sleep(10 * time.Second)
		if wakes := wakes.Load(); wakes > 50 {
			t.Errorf("%d passes were woken in 10 s", wakes)
		}
	})
}
