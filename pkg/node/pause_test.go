package node

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
)

// TestPausedNodesAreKept: while everything is paused, no Node is deleted, however surely its instance is gone.
func TestPausedNodesAreKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAccount(t, emulator.Options{})
		var paused atomic.Bool
		c := newCluster(t, Options{API: a.Client, Paused: paused.Load})
		nodes := c.join(a.put(3))
		monitor(c, nodes, time.Minute)
		a.ReleaseInstance("i-0")
		paused.Store(true)
		if gone, _ := monitor(c, nodes, 30*time.Minute); gone != 0 {
			t.Errorf("%d nodes were called gone while paused", gone)
		}
		paused.Store(false)
		if gone, _ := monitor(c, nodes, 10*time.Minute); gone == 0 {
			t.Error("no node was called gone after the pause")
		}
	})
}
