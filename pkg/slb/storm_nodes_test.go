package slb

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
)

// TestNodesAtOnce: a tenth of all nodes joins at once, and leaves at once, with and without a new process in the middle of it. Each vServer
// group is written to once for all of them, in the time that the quota of these writes takes.
func TestNodesAtOnce(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	for _, test := range []struct {
		name    string
		event   func(*storm)
		restart bool
	}{
		{"join", func(s *storm) { s.Join(stormNodes) }, false},
		{"leave", func(s *storm) { s.Leave(stormNodes) }, false},
		{"join and restart", func(s *storm) { s.Join(stormNodes) }, true},
		{"leave and restart", func(s *storm) { s.Leave(stormNodes) }, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newStorm(t)
				defer func() { s.stop() }()
				test.event(s)
				if test.restart {
					time.Sleep(20 * time.Second)
					s.replaceProcess()
				}
				calls := s.over()
				most := scaleServices * 11 / 10
				if test.restart {
					most = 2 * scaleServices // a new process has a pass over each Service, which may balance its nodes once more
				}
				if len(calls) > most {
					t.Errorf("%d writes for %d nodes, want %d at most", len(calls), stormNodes, most)
				}
				s.OncePerWindow(calls)
				s.InTime(calls)
			})
		})
	}
}

// TestFiveHundredNodesAtOnce: 500 nodes join at once, and then 500 leave at once, each with a new process in the middle of it, in a cluster
// with the proportions of the others but more nodes. Each vServer group is written to once per window, in the time that the quota of these
// writes takes. The balance takes further passes.
func TestFiveHundredNodesAtOnce(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	const many, windows = 500, 4
	size := scaleSize{nodes: 1250, services: scaleServices, backends: scaleBackends * 4, attachments: scaleAttachments}
	synctest.Test(t, func(t *testing.T) {
		s := newStormOf(t, size)
		defer func() { s.stop() }()
		for _, event := range []struct {
			name string
			have func(int)
		}{{"join", s.Join}, {"leave", s.Leave}} {
			s.begin()
			event.have(many)
			time.Sleep(20 * time.Second)
			s.replaceProcess()
			calls := s.quiet()
			t.Logf("%d nodes %s: %d writes", many, event.name, len(calls))
			if most := windows * size.services; len(calls) > most {
				t.Errorf("%d nodes %s: %d writes, want %d at most", many, event.name, len(calls), most)
			}
			s.OncePerWindow(calls)
			s.InTime(calls)
		}
	})
}
