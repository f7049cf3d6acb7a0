package slb

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/backend"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/config"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/quota"
)

const (
	// assumedNodes is how many nodes the clusters of these tests have.
	assumedNodes = 60
	// callsOfAPass is how many calls a pass makes at most to find out which three instances the cloud refuses. What it finds counts for the
	// others when it ends.
	callsOfAPass = 12
)

// assumedBook knows that an instance may be behind so many CLBs.
func assumedBook(n int) *quota.Book {
	book := quota.NewBook(nil)
	book.Read(map[quota.Code]quota.Reading{quota.CLBsPerInstance: {Value: n}})
	return book
}

// assumedFleet has nodes in a cloud that lets an instance be behind so many CLBs, and a manager that knows the same number.
func assumedFleet(t *testing.T, attachments int) *fleet {
	t.Helper()
	f := newFleetIn(t, cloud.Limits{LBsPerInstance: attachments, LoadBalancers: 1000},
		config.Config{BackendSubset: backend.SubsetAuto, Quotas: assumedBook(attachments)})
	for i := range assumedNodes {
		f.createFleetNode(nodeName(i))
	}
	return f
}

// putMany creates Services one after the other.
func (f *fleet) putMany(prefix string, n int) {
	f.t.Helper()
	for i := range n {
		f.put(testService(fmt.Sprintf("%s%03d", prefix, i), 80))
		synctest.Wait()
	}
}

// refusedIn lets time pass and returns how many writes have arrived since the calls were read last, and how many of them the cloud refused.
func (f *fleet) refusedIn(d time.Duration) (writes, refused int) {
	f.t.Helper()
	time.Sleep(d)
	for _, call := range f.emulator.NewCalls() {
		if strings.HasPrefix(call.Action, "Describe") {
			continue
		}
		writes++
		if call.Code != "" {
			refused++
		}
	}
	f.t.Logf("%s: %d writes, %d refused", d, writes, refused)
	return writes, refused
}

// TestFewCallsFindALargerQuota: instances are behind more CLBs than the quota that the manager assumes, which proves that it is larger, and
// nothing says how much. A few refused calls find out, rather than one for each Service and instance.
func TestFewCallsFindALargerQuota(t *testing.T) {
	t.Parallel()
	const attachments, assumed, before, later = 14, 10, 12, 28
	synctest.Test(t, func(t *testing.T) {
		f := assumedFleet(t, attachments)
		defer func() { f.stop() }()
		f.putMany("s", before)
		f.rest()
		f.stop()
		f.config.Quotas = assumedBook(assumed)
		f.start()
		f.rest()
		f.emulator.NewCalls()
		f.putMany("t", later)
		if _, refused := f.refusedIn(time.Hour); refused > assumedNodes {
			t.Errorf("%d refused calls in the first hour, want %d at most", refused, assumedNodes)
		}
		if writes, _ := f.refusedIn(time.Hour); writes > 0 {
			t.Errorf("%d writes in the second hour, want none", writes)
		}
	})
}

// TestQuotaBelowWhatIsUsed: subsets use nearly all of a quota, and then the Quota Center shows a smaller one, whether it is true or not.
// Each Service tries once at most, and nothing is taken from any Service.
func TestQuotaBelowWhatIsUsed(t *testing.T) {
	t.Parallel()
	const services, attachments, shown = 40, 10, 7
	for _, truly := range []int{attachments, shown} {
		t.Run(fmt.Sprintf("the cloud allows %d", truly), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := assumedFleet(t, attachments)
				defer func() { f.stop() }()
				f.putMany("s", services)
				f.rest()
				before := f.attachments()
				f.emulator.Change(func(s *emulator.Settings) { s.Quotas.LBsPerInstance = truly })
				f.config.Quotas.Read(map[quota.Code]quota.Reading{quota.CLBsPerInstance: {Value: shown}})
				f.emulator.NewCalls()
				f.createFleetNode("late") // every Service chooses anew
				if _, refused := f.refusedIn(time.Hour); refused > services*callsOfAPass {
					t.Errorf("%d refused calls in the first hour, want %d at most", refused, services*callsOfAPass)
				}
				if writes, _ := f.refusedIn(time.Hour); writes > 0 {
					t.Errorf("%d writes in the second hour, want none", writes)
				}
				if after := f.attachments(); after < before {
					t.Errorf("%d backend servers, want the %d that there were", after, before)
				}
			})
		})
	}
}

// attachments is how many backend servers all Services have together.
func (f *fleet) attachments() int {
	n := 0
	for _, lb := range f.state() {
		for _, servers := range lb.Groups {
			n += len(servers)
		}
	}
	return n
}
