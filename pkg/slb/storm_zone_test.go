package slb

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
)

// silent has all nodes of a zone stop to answer, and returns their instances.
func (s *storm) silent() sets.Set[string] {
	s.t.Helper()
	dead := sets.New[string]()
	for i := 0; i < scaleNodes; i += scaleZones {
		name := nodeName(i)
		dead.Insert("i-" + name)
		if i/scaleZones%60 == 59 {
			synctest.Wait() // the fake API server's watches hold no more than a hundred events
		}
		s.change(name, func(node *corev1.Node) { node.Status.Conditions[0].Status = corev1.ConditionFalse })
	}
	return dead
}

// TestZoneDies: the dead nodes of a zone leave every Service in the time that the writes need, and every Service has living ones all the time, with and without a
// new process in the middle of it.
func TestZoneDies(t *testing.T) {
	t.Parallel()
	for name, restart := range map[string]bool{"one process": false, "restart": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newStorm(t)
				defer func() { s.stop() }()
				dead := s.silent()
				s.livingStay(dead)
				if restart {
					time.Sleep(20 * time.Second)
					s.replaceProcess()
				}
				s.rest()
				behind, _ := s.holders()
				for name, ids := range behind {
					if slices.ContainsFunc(ids, dead.Has) {
						t.Errorf("%s has dead backends", name)
					}
				}
				if len(behind) != scaleServices {
					t.Errorf("%d Services have backends, want %d", len(behind), scaleServices)
				}
				s.outInTime(dead)
				s.livingStay(dead)
			})
		})
	}
}

// livingStay checks that every Service has living instances behind it, and that none of those was taken out without another one in its place.
func (s *storm) livingStay(dead sets.Set[string]) {
	s.t.Helper()
	behind, loads := s.holders()
	for name, ids := range behind {
		if !slices.ContainsFunc(ids, func(id string) bool { return !dead.Has(id) }) {
			s.t.Errorf("%s has no living backend servers", name)
		}
	}
	living := sets.KeySet(loads).Difference(dead)
	for _, call := range s.emulator.Unread() {
		if call.Action == removeServers && takesOut(call, living) {
			s.t.Errorf("a living backend server was removed: %s", call.Parameters["BackendServers"])
		}
	}
}

// outInTime checks that the writes that take out dead instances took at most 1.1 times what they take at the rate of their quotas.
func (s *storm) outInTime(dead sets.Set[string]) {
	s.t.Helper()
	last, counts := time.Time{}, map[string]int{}
	for _, call := range s.emulator.Unread() {
		if call.Code == "" && takesOut(call, dead) {
			counts[call.Action]++
			last = call.Time
		}
	}
	took, least := last.Sub(s.began), time.Duration(max(counts[removeServers], counts[replaceServers]))*time.Minute/groupQuota
	s.t.Logf("%v took dead nodes out in %s; at the rate of the quota they take %s", counts, took, least)
	if float64(took) > 1.1*float64(least) {
		s.t.Errorf("%v took %s, more than 1.1 times the %s that their quota takes", counts, took, least)
	}
}

// takesOut reports whether a call removes or replaces one of the instances.
func takesOut(call emulator.Call, instances sets.Set[string]) bool {
	leaving := ""
	switch call.Action {
	case removeServers:
		leaving = call.Parameters["BackendServers"]
	case replaceServers:
		leaving = call.Parameters["OldBackendServers"]
	}
	for id := range instances {
		if strings.Contains(leaving, `"`+id+`"`) {
			return true
		}
	}
	return false
}
