package nlb

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/teststorm"
)

// TestZoneFails: all nodes of a zone fall silent, with and without a new process in the middle of it. They leave every server group in the
// time that the writes need, before others come. No group is ever without servers that work.
func TestZoneFails(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	teststorm.WithRestart(t, func(t *testing.T, restart bool) {
		s := newManyStorm(t)
		dead, failed := s.ZoneFails(corev1.ConditionUnknown), time.Now()
		if restart {
			s.alive(stormRestart, dead)
			s.replaceProcess()
		}
		s.alive(2*time.Minute, dead)
		calls := s.over(s.Count() - len(dead))
		for group, ids := range s.serversByGroup() {
			if slices.ContainsFunc(ids, dead.Has) {
				t.Errorf("%s has dead servers", group)
			}
		}
		s.OutInTime(calls, dead)
		s.OutFirst(calls, dead, failed)
		s.OncePerWindow(calls)
	})
}

// alive checks for some time that each server group has a server that works.
func (s *manyStorm) alive(during time.Duration, dead sets.Set[string]) {
	s.t.Helper()
	for end := time.Now().Add(during); time.Now().Before(end); time.Sleep(5 * time.Second) {
		synctest.Wait()
		for group, ids := range s.serversByGroup() {
			if !slices.ContainsFunc(ids, func(id string) bool { return !dead.Has(id) }) {
				s.t.Errorf("%s has no server that works: %v", group, ids)
			}
		}
	}
}
