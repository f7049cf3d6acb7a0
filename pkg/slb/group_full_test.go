package slb

import (
	"strings"
	"testing"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/quota"
)

// TestGroupWithoutRoomForListeners: the CLB of a group has all listeners that it may have, and the next Service does not ask for another
// CLB. One Warning says so, and what to do, and no listener and no CLB is tried for.
func TestGroupWithoutRoomForListeners(t *testing.T) {
	t.Parallel()
	const most = 2
	w := newWorldWith(t, cloud.Limits{ListenersPerLB: most})
	w.config.Quotas = quota.NewBook(map[string]int{string(quota.ListenersPerCLB): most})
	w.restart()
	threeNodes(w)
	w.putAll(grouped("web", "edge", 80), grouped("shop", "edge", 81))
	w.put(born(grouped("late", "edge", 82), most))
	for range 3 {
		_ = w.pass("late")
	}
	if writes := writesOf(w.calls()); len(writes) > 0 {
		t.Errorf("wrote %v", writes)
	}
	wantOwners(t, w, map[string][]string{edgeCLB: {"tcp:80 web", "tcp:81 shop"}})
	var said []string
	for _, event := range w.newEvents() {
		if strings.Contains(event, "Warning ListenerConflict") {
			said = append(said, event)
		}
	}
	for _, part := range []string{"no room for", "loadbalancer-group-overflow"} {
		if len(said) != 1 || !strings.Contains(said[0], part) {
			t.Errorf("events %q, want one that says %q", said, part)
		}
	}
}
