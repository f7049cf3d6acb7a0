package node

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// TestMonitorCalls: a pass over silent nodes costs one call per hundred, also when the nodes are asked for one by one.
func TestMonitorCalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAccount(t, emulator.Options{})
		c := newCluster(t, Options{API: a.Client})
		nodes := c.join(a.put(300))
		for pass := range 3 {
			before := a.Last()
			for _, node := range nodes {
				if exists, err := c.InstanceExists(t.Context(), node); !exists || err != nil {
					t.Fatalf("exists = %v, %v", exists, err)
				}
			}
			if n := a.Count(before, "DescribeInstances"); n != 3 {
				t.Errorf("pass %d took %d calls, want 3", pass, n)
			}
			time.Sleep(period)
		}
	})
}

// TestAddressPassCalls: the stock address pass of 5 min must not read all instances every time.
func TestAddressPassCalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAccount(t, emulator.Options{})
		c := newCluster(t, Options{API: a.Client})
		nodes := c.join(a.put(600), isReady)
		for pass := range 6 {
			before := a.Last()
			for _, node := range nodes {
				if _, err := c.InstanceMetadata(t.Context(), node); err != nil {
					t.Fatal(err)
				}
			}
			if n := a.Count(before, "DescribeInstances"); n > 6 || (pass > 0 && n > 5) {
				t.Errorf("pass %d took %d calls, want at most 6, and 5 after the first", pass, n)
			}
			time.Sleep(5 * time.Minute)
		}
	})
}

// TestMonitorPeriod: whatever the pace of the stock controller, each of its passes makes one call at most, and those over nodes
// that fell silent just now make it.
func TestMonitorPeriod(t *testing.T) {
	t.Parallel()
	for _, period := range []time.Duration{500 * time.Millisecond, 5 * time.Second, 5 * time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			a := newAccount(t, emulator.Options{})
			c := newCluster(t, Options{API: a.Client, MonitorPeriod: period})
			nodes := c.join(a.put(50))
			before, passes := a.Last(), 0
			for ; passes < 10; passes++ {
				for _, node := range nodes {
					if exists, err := c.InstanceExists(t.Context(), node); !exists || err != nil {
						t.Fatalf("exists = %v, %v", exists, err)
					}
				}
				time.Sleep(period)
			}
			if n := a.Count(before, "DescribeInstances"); n > passes || n < passes/2 {
				t.Errorf("period %s: %d passes made %d calls", period, passes, n)
			}
		})
	}
}

// TestBatchSize asks for as many instances in a call as the user wants, and never for more than ECS takes.
func TestBatchSize(t *testing.T) {
	t.Parallel()
	for size, want := range map[int]int{0: 2, 50: 3, 1000: 2} {
		synctest.Test(t, func(t *testing.T) {
			a := newAccount(t, emulator.Options{})
			c := newCluster(t, Options{API: a.Client, BatchSize: size})
			nodes := c.join(a.put(150))
			before := a.Last()
			for _, node := range nodes {
				if exists, err := c.InstanceExists(t.Context(), node); !exists || err != nil {
					t.Fatalf("exists = %v, %v", exists, err)
				}
			}
			if n := a.Count(before, "DescribeInstances"); n != want {
				t.Errorf("batch size %d: %d calls for 150 nodes, want %d", size, n, want)
			}
		})
	}
}

// TestInvisibleNodesKeepBatching: nodes whose instances ECS does not show cost what others do, and take no room from them.
func TestInvisibleNodesKeepBatching(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAccount(t, emulator.Options{})
		c := newCluster(t, Options{API: a.Client})
		var nodes []*corev1.Node
		for _, instance := range a.put(150) {
			nodes = append(nodes, nodeOf(instance))
		}
		for i := range 150 {
			nodes = append(nodes, nodeOf(emulator.Instance{ID: fmt.Sprintf("i-%03d-hidden", i)}, tainted))
		}
		c.add(nodes...)
		monitor(c, nodes, time.Minute)
		for pass := range 3 {
			before := a.Last()
			monitor(c, nodes, period)
			if n := a.Count(before, "DescribeInstances"); n > 3 {
				t.Errorf("pass %d of the lifecycle controller took %d calls for 300 nodes, want 3", pass, n)
			}
		}
		before := a.Last()
		for _, node := range nodes {
			_, _ = c.InstanceMetadata(t.Context(), node)
		}
		if n := a.Count(before, "DescribeInstances"); n > 4 {
			t.Errorf("a pass over their addresses took %d calls for 300 nodes, want 4 at most", n)
		}
	})
}

// TestSilentForLong: many nodes that have been silent for long, because their instances are stopped or not shown, cost a few calls a
// minute.
func TestSilentForLong(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		stopped, hidden int
		most            int // calls per minute
	}{
		"500 stopped": {stopped: 500, most: 5},
		"150 hidden":  {hidden: 150, most: 6},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				a := newAccount(t, emulator.Options{})
				c := newCluster(t, Options{API: a.Client})
				control, err := a.PutInstance("i-control", emulator.InstanceSpec{})
				if err != nil {
					t.Fatal(err)
				}
				nodes := []*corev1.Node{nodeOf(control, isReady)}
				for i := range test.stopped {
					instance, err := a.PutInstance(fmt.Sprintf("i-%d", i), emulator.InstanceSpec{Status: alicloud.InstanceStopped})
					if err != nil {
						t.Fatal(err)
					}
					nodes = append(nodes, nodeOf(instance))
				}
				for i := range test.hidden {
					nodes = append(nodes, nodeOf(emulator.Instance{ID: fmt.Sprintf("i-%d-hidden", i)}, tainted))
				}
				c.add(nodes...)
				monitor(c, nodes, 10*time.Minute)
				before := a.Last()
				monitor(c, nodes, 10*time.Minute)
				if n := a.Count(before, "DescribeInstances"); n > 10*test.most {
					t.Errorf("%d calls in ten minutes, want at most %d", n, 10*test.most)
				}
			})
		})
	}
}

// TestInitializationOfHiddenNodes: the stock node controller tries nodes again for ever whose instances ECS does not show, at times
// of their own. That costs what the lifecycle controller's own passes do.
func TestInitializationOfHiddenNodes(t *testing.T) {
	t.Parallel()
	for name, with := range map[string]func(*corev1.Node){"with provider ID": func(*corev1.Node) {}, "by address": withoutProviderID} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { playHidden(t, with) })
		})
	}
}

func playHidden(t *testing.T, with func(*corev1.Node)) {
	t.Helper()
	a := newAccount(t, emulator.Options{})
	c := newCluster(t, Options{API: a.Client})
	var nodes []*corev1.Node
	for i := range 150 {
		hidden := emulator.Instance{ID: fmt.Sprintf("i-%03d-hidden", i), PrivateIP: fmt.Sprintf("10.1.9.%d", i+1)}
		nodes = append(nodes, nodeOf(hidden, tainted, with))
	}
	c.add(nodes...)
	minute := func() int {
		before := a.Last()
		for pass := range int(time.Minute / period) {
			monitor(c, nodes, period-time.Second)
			for at := range 10 { // one node in a tenth of a second
				_, _ = c.InstanceMetadata(t.Context(), nodes[(pass*10+at)%len(nodes)])
				time.Sleep(100 * time.Millisecond)
			}
		}
		return a.Count(before, "DescribeInstances")
	}
	minute()
	for range 3 {
		if n := minute(); n > 12 {
			t.Errorf("%d calls in a minute, want at most 12", n)
		}
	}
	// An instance that appears after all is found within a minute.
	a.put(1)
	late := nodeOf(emulator.Instance{ID: "i-late"}, tainted)
	c.add(late)
	_, _ = c.InstanceMetadata(t.Context(), late)
	if _, err := a.PutInstance("i-late", emulator.InstanceSpec{}); err != nil {
		t.Fatal(err)
	}
	time.Sleep(missAge + time.Second)
	if metadata, err := c.InstanceMetadata(t.Context(), late); err != nil || metadata == nil {
		t.Errorf("a new instance is not found after %s: %v", missAge, err)
	}
}

// TestHiddenNodesAtFirst: nodes that have just fallen silent, more than a call names and without one that is shown among them, cost no
// more than later.
func TestHiddenNodesAtFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAccount(t, emulator.Options{})
		c := newCluster(t, Options{API: a.Client})
		var nodes []*corev1.Node
		for _, instance := range a.put(20) {
			nodes = append(nodes, nodeOf(instance, isReady))
		}
		for i := range 150 {
			nodes = append(nodes, nodeOf(emulator.Instance{ID: fmt.Sprintf("i-%03d-hidden", i)}, tainted))
		}
		c.add(nodes...)
		for _, node := range nodes {
			_, _ = c.InstanceMetadata(t.Context(), node)
		}
		time.Sleep(time.Minute)
		for _, node := range nodes {
			testkube.Ready(node).LastTransitionTime = metav1.Now()
		}
		before := a.Last()
		monitor(c, nodes, 2*time.Minute)
		if n := a.Count(before, "DescribeInstances"); n > 2*12 {
			t.Errorf("%d calls in two minutes, want at most 12 a minute", n)
		}
	})
}
