package slb

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/teststorm"
)

// TestZoneDies: the dead nodes of a zone leave every Service in the time that the writes need, before others come, and every Service has
// living ones all the time, with and without a new process in the middle of it. The nodes say that they do not work, or nothing at all any
// more.
func TestZoneDies(t *testing.T) {
	t.Parallel()
	for _, ready := range []corev1.ConditionStatus{corev1.ConditionFalse, corev1.ConditionUnknown} {
		t.Run("Ready="+string(ready), func(t *testing.T) {
			t.Parallel()
			teststorm.WithRestart(t, func(t *testing.T, restart bool) {
				s := newStorm(t)
				defer func() { s.stop() }()
				dead, failed := s.ZoneFails(ready), time.Now()
				s.livingStay(dead, s.emulator.Unread())
				if restart {
					time.Sleep(20 * time.Second)
					s.replaceProcess()
				}
				calls := s.Over()
				s.served(dead)
				s.OutInTime(calls, dead)
				s.OutFirst(calls, dead, failed)
				s.OncePerWindow(calls)
				s.livingStay(dead, calls)
			})
		})
	}
}

// served checks that all Services have backend servers, and that none of those is dead.
func (s *storm) served(dead sets.Set[string]) {
	s.t.Helper()
	behind := s.holders()
	for name, ids := range behind {
		if slices.ContainsFunc(ids, dead.Has) {
			s.t.Errorf("%s has dead backends", name)
		}
	}
	if len(behind) != scaleServices {
		s.t.Errorf("%d Services have backends, want %d", len(behind), scaleServices)
	}
}

// livingStay checks that every Service has living instances behind it, and that none of those was taken out by one of the calls without
// another one in its place.
func (s *storm) livingStay(dead sets.Set[string], calls []emulator.Call) {
	s.t.Helper()
	living := sets.New[string]()
	for name, ids := range s.holders() {
		working := slices.DeleteFunc(ids, dead.Has)
		if living.Insert(working...); len(working) == 0 {
			s.t.Errorf("%s has no living backend servers", name)
		}
	}
	for _, call := range calls {
		if call.Action == removeServers && s.TakesOut(call, living) {
			s.t.Errorf("a living backend server was removed: %s", call.Parameters["BackendServers"])
		}
	}
}
