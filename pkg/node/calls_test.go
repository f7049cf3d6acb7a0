package node

import (
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
)

// TestMonitorCalls: a pass over silent nodes costs one call per hundred, also when the nodes are asked for one by one.
func TestMonitorCalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAccount(t, emulator.Options{})
		c := newCluster(t, Options{API: a.client})
		var nodes []*corev1.Node
		for _, instance := range a.put(300) {
			nodes = append(nodes, nodeOf(instance))
		}
		c.add(nodes...)
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
		c := newCluster(t, Options{API: a.client})
		var nodes []*corev1.Node
		for _, instance := range a.put(600) {
			nodes = append(nodes, nodeOf(instance, isReady))
		}
		c.add(nodes...)
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

// TestMonitorPeriod: whatever the pace of the stock controller, each of its passes asks once, and never lives on an answer
// of the pass before.
func TestMonitorPeriod(t *testing.T) {
	t.Parallel()
	for _, period := range []time.Duration{500 * time.Millisecond, 5 * time.Second, 5 * time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			a := newAccount(t, emulator.Options{})
			c := newCluster(t, Options{API: a.client, MonitorPeriod: period})
			var nodes []*corev1.Node
			for _, instance := range a.put(50) {
				nodes = append(nodes, nodeOf(instance))
			}
			c.add(nodes...)
			before, passes := a.Last(), 0
			for ; passes < 10; passes++ {
				for _, node := range nodes {
					if exists, err := c.InstanceExists(t.Context(), node); !exists || err != nil {
						t.Fatalf("exists = %v, %v", exists, err)
					}
				}
				time.Sleep(period)
			}
			if n := a.Count(before, "DescribeInstances"); n != passes {
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
			c := newCluster(t, Options{API: a.client, BatchSize: size})
			var nodes []*corev1.Node
			for _, instance := range a.put(150) {
				nodes = append(nodes, nodeOf(instance))
			}
			c.add(nodes...)
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
