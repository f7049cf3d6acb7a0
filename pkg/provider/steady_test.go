package provider

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
)

// What a new process and the steady state may cost.
const (
	// steadyReady is after what time a new process serves a change, and steadySpare how many reads it may make beside one for the backend
	// servers of each Service and those in pages: after a change, it reads a CLB several times, because calls of the process before may still
	// arrive.
	steadyReady = 20 * time.Second
	steadySpare = 30
	// steadyWindow is the shortest drift period. A Service may cost steadyReads reads in it, or steadyFirstReads in the first one of a
	// process, which also lists vServer groups. No minute may have more than steadyPeak times its share.
	steadyWindow = 10 * time.Minute
	steadyReads  = 1.2
	// steadyLeast is how many reads drift detection needs at least: those of the backend servers of a Service in every second period, and
	// shared ones. In an hour, which has five periods, the backend servers of each Service are read steadyOften times at least.
	steadyLeast      = 0.5
	steadyOften      = 2
	steadyFirstReads = 1.3
	steadyPeak       = 3
	// steadyNodeCalls are for nodes, routes and quotas, 20 of them to see whether somebody has switched source/destination checks on: one per
	// hundred nodes and period of 5 min.
	steadyNodeCalls = 40
)

// TestSteadyState has a new process take over a cluster of a thousand nodes and 400 Services, in a bubble, with all controllers, those of
// Kubernetes and ours. It serves a change of a Service within seconds, writes nothing else, and reads little. Then nothing changes for an
// hour but the heartbeats of the nodes: there are no writes, no object of the API server is read, and drift of every Service is detected
// with few reads, evenly spread.
func TestSteadyState(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSteadyCluster(t)
		s.start()
		s.settle()
		s.stop()

		s.takeOver()
		before := s.server.Last()
		for window := range 6 {
			s.steady(window)
		}
		s.allRead(before)
		s.stop()
	})
}

// takeOver checks what a new process does with a cluster in which a Service has just changed.
func (s *steadyCluster) takeOver() {
	s.t.Helper()
	before, began := s.server.Last(), time.Now()
	s.start()
	changed, write := s.changeService()
	synctest.Wait() // a start lists everything
	s.kube.ClearActions()
	time.Sleep(2 * steadyReady)
	s.unasked(changed)

	counted := s.count(before)
	s.t.Logf("a new process: %v", counted.actions)
	if len(counted.writes) != 1 || counted.writes[0].Action != write {
		s.t.Errorf("a new process makes these calls, want %s once, and no other write: %v", write, counted.actions)
	} else if took := counted.writes[0].Time.Sub(began); took > steadyReady {
		s.t.Errorf("a new process serves a change after %s, want %s at most", took, steadyReady)
	} else {
		s.t.Logf("a new process serves a change after %s", took)
	}
	pages := steadyServices/100 + steadyServices/10 // of CLBs, and of listeners of ten CLBs
	if n, most := len(counted.reads), steadyServices+pages+steadySpare; n > most || n < steadyServices {
		s.t.Errorf("a new process makes %d reads of CLBs, want %d to %d", n, steadyServices, most)
	}
	if n := counted.actions["DescribeLoadBalancers"]; n < 1 || n > steadyServices/10 {
		s.t.Errorf("a new process lists CLBs with %d calls, want pages of many", n)
	}
}

// allRead checks that drift detection has read the backend servers of every Service several times since.
func (s *steadyCluster) allRead(since int64) {
	s.t.Helper()
	times := map[string]int{}
	for _, call := range s.count(since).reads {
		if call.Action == "DescribeVServerGroupAttribute" {
			times[call.Parameters["VServerGroupId"]]++
		}
	}
	if len(times) != steadyServices {
		s.t.Errorf("the backend servers of %d vServer groups were read, want %d", len(times), steadyServices)
	}
	for group, n := range times {
		if n < steadyOften {
			s.t.Errorf("the backend servers of %s were read %d times in an hour, want %d at least", group, n, steadyOften)
		}
	}
}

// steady checks a window in which nothing changes.
func (s *steadyCluster) steady(window int) {
	s.t.Helper()
	before := s.server.Last()
	s.heartbeats()
	time.Sleep(steadyWindow)
	s.unasked("")
	counted := s.count(before)
	for _, call := range counted.writes {
		s.t.Errorf("window %d: %s", window, call.Action)
	}
	each, most := float64(len(counted.reads))/steadyServices, steadyReads
	if window == 0 {
		most = steadyFirstReads
	}
	busiest, mean := counted.busiest(), float64(len(counted.reads))/steadyWindow.Minutes()
	s.t.Logf("window %d: %.2f reads per Service, at most %d in a minute: %v", window, each, busiest, counted.actions)
	if each > most || each < steadyLeast {
		s.t.Errorf("window %d: %.2f reads per Service, want %.1f to %.1f", window, each, steadyLeast, most)
	}
	if float64(busiest) > steadyPeak*mean {
		s.t.Errorf("window %d: %d reads in a minute, %.1f on average", window, busiest, mean)
	}
	if counted.others > steadyNodeCalls || counted.others == 0 {
		s.t.Errorf("window %d: %d calls for nodes and routes, want 1 to %d", window, counted.others, steadyNodeCalls)
	}
}
