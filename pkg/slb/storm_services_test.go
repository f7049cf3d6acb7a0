package slb

import (
	"fmt"
	"testing"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/teststorm"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
)

const (
	// manyAtOnce Services take four minutes at creationQuota, which is how many CLBs the published limits let an account create in a minute.
	manyAtOnce    = 240
	creationQuota = 60
)

// TestServicesAtOnce: of many Services made at once, the last one has its address in 1.1 times what the quota of creations takes, and each
// has it as soon as its listener runs, with and without a new process in the middle of it.
func TestServicesAtOnce(t *testing.T) {
	t.Parallel()
	teststorm.WithRestart(t, func(t *testing.T, restart bool) {
		f := newFleet(t)
		defer func() { f.stop() }()
		for _, name := range []string{"a", "b", "c"} {
			f.createFleetNode(name)
		}
		first := teststorm.Published(f.kube)
		began := time.Now()
		for i := range manyAtOnce {
			f.put(testService(fmt.Sprintf("s%03d", i), 80))
		}
		if restart {
			time.Sleep(manyAtOnce / creationQuota / 2 * time.Minute)
			f.replaceProcess()
		}
		f.rest()
		teststorm.AllPublished(t, first, began, manyAtOnce, manyAtOnce*time.Minute/creationQuota)
		f.soonPublished(first)
	})
}

// soonPublished checks that each Service shows its address as soon as its listener runs.
func (f *fleet) soonPublished(first map[string]time.Time) {
	f.t.Helper()
	runs := map[string]time.Time{}
	for _, call := range f.emulator.Unread() {
		if call.Action == "StartLoadBalancerListener" && call.Code == "" {
			runs[call.Parameters["LoadBalancerId"]] = call.Time
		}
	}
	longest := time.Duration(0)
	for name, at := range first {
		serves, ok := runs[f.get(name).Labels[driver.LabelLoadBalancerID]]
		if !ok {
			f.t.Errorf("%s shows an address and no listener of it was started", name)
		}
		longest = max(longest, at.Sub(serves))
	}
	f.t.Logf("a Service shows its address %s after its listener runs at most", longest)
	if longest > time.Second {
		f.t.Errorf("a Service shows its address %s after its listener runs", longest)
	}
}
