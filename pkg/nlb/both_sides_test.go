package nlb

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
)

// onBothSides runs a test while a fact about the cloud holds, and while it does not.
func onBothSides(t *testing.T, fact string, test func(t *testing.T, w *world)) {
	t.Helper()
	for side, flipped := range map[string][]string{"holds": {}, "is false": {fact}} {
		t.Run(side, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, w *world) {
				w.account.Change(func(s *emulator.Settings) { s.Flipped = flipped })
				test(t, w)
			})
		})
	}
}

// TestCreationOfAnyDuration: an NLB that is created, or deleted, as fast as a job ends is served and removed like one that takes longer.
func TestCreationOfAnyDuration(t *testing.T) {
	t.Parallel()
	onBothSides(t, "nlb.durations", func(t *testing.T, w *world) {
		t.Helper()
		w.serve(2, testkube.TCP(80))
		if got, want := w.listeners(w.balancer("web").ID), []string{"TCP:80 i-n1:30080=100 i-n2:30080=100"}; !slices.Equal(got, want) {
			t.Errorf("listeners %v, want %v", got, want)
		}
		w.quiet("web")
		w.remove("web")
		w.passes("web", 5*time.Minute)
		if left := w.balancers("web"); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
	})
}

// TestNodeReplacedAtTheQuota: one node goes and another comes while as many servers are behind the NLB as its quota allows, and connections
// to the one that goes are drained. It leaves first, and the cloud may refuse the new one until they are; then it is added.
func TestNodeReplacedAtTheQuota(t *testing.T) {
	t.Parallel()
	onBothSides(t, "nlb.removing-counts", func(t *testing.T, w *world) {
		t.Helper()
		refuses := len(w.account.Settings().Flipped) == 0
		w.serve(2, testkube.TCP(80), with(annotation.ConnectionDrain, "on"), with(annotation.ConnectionDrainTimeout, "90"))
		w.account.Change(func(s *emulator.Settings) {
			s.Flipped = append(s.Flipped, "nlb.removing-ends-with-job")
			s.Quotas.ServersPerNLB = 2
		})
		w.deleteNode("n2")
		w.addNodes("n3")
		w.calls()
		w.passes("web", 30*time.Minute)
		refused := len(slices.DeleteFunc(w.calls(), func(call string) bool { return !strings.Contains(call, "QuotaInsufficient") }))
		if (refused > 0) != refuses {
			t.Errorf("%d calls were refused for the quota, want some: %t", refused, refuses)
		}
		if got, want := w.listeners(w.balancer("web").ID), []string{"TCP:80 i-n1:30080=100 i-n3:30080=100"}; !slices.Equal(got, want) {
			t.Errorf("listeners %v, want %v", got, want)
		}
		w.quiet("web")
	})
}

// TestNewNLBWhateverTheToken: a Service goes back to a group whose NLB is gone, which the process has not seen. The cloud answers the
// ClientToken of that NLB with its ID again, or creates another one: either way, the Service gets one that is there.
func TestNewNLBWhateverTheToken(t *testing.T) {
	t.Parallel()
	onBothSides(t, "nlb.token-of-deleted", func(_ *testing.T, w *world) {
		w.groupWorld(grouped("web", "edge", 1, testkube.TCP(80)))
		w.change("web", without(annotation.Group))
		w.live("web", 5*time.Minute)
		w.restart()
		w.change("web", with(annotation.Group, "edge"))
		w.live("web", 30*time.Minute)
		w.wantOwners(map[string][]string{edgeNLB: {"tcp:80 web"}})
	})
}
