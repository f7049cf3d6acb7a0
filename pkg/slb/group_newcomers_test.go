package slb

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/backend"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/config"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/quota"
)

// TestNewcomersFindRoom: Services join a group one after the other. Each port gets its share of nodes, so that there is room for all of
// them, and the cloud refuses nothing. A new process may try once: it does not know what the others have.
func TestNewcomersFindRoom(t *testing.T) {
	t.Parallel()
	for name, restart := range map[string]bool{"one process": false, "a new process": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				const nodes, services = 50, 45
				f := newFleetIn(t, cloud.Limits{}, config.Config{BackendSubset: backend.SubsetAuto})
				defer func() { f.stop() }()
				for i := range nodes {
					f.createFleetNode(nodeName(i))
				}
				for i := range services {
					if restart && i == services/2 {
						f.stop()
						f.start()
					}
					f.put(born(overflowing(grouped(nameOfSharing(i), "edge", int32(1000+i))), int64(i))) //nolint:gosec // a port
					time.Sleep(500 * time.Millisecond)
					synctest.Wait()
				}
				time.Sleep(3 * time.Minute)
				synctest.Wait()
				refused, _ := f.refused()
				if most := map[bool]int{true: 12}[restart]; refused > most {
					t.Errorf("%d calls were refused, want %d at most", refused, most)
				}
				members := f.members()
				for group, n := range members {
					if n != membersAtOnce/listenersAtOnce {
						t.Errorf("%s has %d backend servers", group, n)
					}
				}
				if len(members) != services {
					t.Errorf("%d vServer groups, want %d", len(members), services)
				}
			})
		})
	}
}

// TestOthersFillTheCLBOfAGroup: backend servers that no Service of the group has fill its CLB. What is there stays, and the one that comes
// gets what is left, until an hour after a call was refused.
func TestOthersFillTheCLBOfAGroup(t *testing.T) {
	t.Parallel()
	const nodes, members = 5, 20
	// One attempt finds out how many of the backend servers fit.
	const callsOfAnAttempt = 4
	for _, test := range []struct {
		name                   string
		book                   *quota.Book
		refused, first, second int
	}{
		{"assumed", quota.NewBook(nil), callsOfAnAttempt, 4, 1},
		{"configured", quota.NewBook(map[string]int{string(quota.BackendsPerCLB): members}), callsOfAnAttempt, 4, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFleetIn(t, cloud.Limits{BackendsPerLB: members}, config.Config{BackendSubset: backend.SubsetAuto, Quotas: test.book})
				defer func() { f.stop() }()
				for i := range nodes {
					f.createFleetNode(nodeName(i))
				}
				after := func(wait time.Duration) (first, second int) {
					time.Sleep(wait)
					synctest.Wait()
					return len(f.backendsOf("first")["30080"]), len(f.backendsOf("second")["30081"])
				}
				f.put(born(grouped("first", "edge", 80), 0))
				after(time.Minute)
				byHand := f.fillCLB(nodes, members-nodes)
				f.refused()
				f.put(born(grouped("second", "edge", 81), 1))
				first, second := after(30 * time.Minute)
				if refused, _ := f.refused(); refused > test.refused || first != test.first || second != test.second {
					t.Errorf("%d and %d backend servers, want %d and %d; %d calls were refused, want %d at most", first, second, test.first, test.second,
						refused, test.refused)
				}
				if err := f.api.DeleteVServerGroup(t.Context(), byHand); err != nil {
					t.Fatal(err)
				}
				if first, second = after(3 * time.Hour); first < test.first || second < test.second {
					t.Errorf("with room again: %d and %d backend servers", first, second)
				}
			})
		})
	}
}

// fillCLB puts a vServer group with so many backend servers, which somebody has made by hand of the nodes, on the only CLB. It returns its
// id.
func (f *fleet) fillCLB(nodes, servers int) string {
	f.t.Helper()
	members := make([]alicloud.Backend, servers)
	for i := range members {
		members[i] = alicloud.Backend{BackendKey: alicloud.BackendKey{Type: alicloud.BackendECS, ServerID: "i-" + nodeName(i%nodes),
			Port: 40000 + i}, Weight: 100}
	}
	id, err := f.api.CreateVServerGroup(f.t.Context(), f.onlyCLB(), "by hand", members)
	if err != nil {
		f.t.Fatal(err)
	}
	return id
}

// TestNewcomersGetWhatIsLeft: a Service is deleted, and the answer to the call that deletes its vServer group is lost, or somebody deletes
// it by hand. Those that come then get the backend servers that it had.
func TestNewcomersGetWhatIsLeft(t *testing.T) {
	t.Parallel()
	for _, byHand := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			const nodes, members = 6, 12
			f := newFleetIn(t, cloud.Limits{BackendsPerLB: members}, config.Config{
				BackendSubset: backend.SubsetAuto, Quotas: quota.NewBook(map[string]int{string(quota.BackendsPerCLB): members}),
			})
			defer func() { f.stop() }()
			for i := range nodes {
				f.createFleetNode(nodeName(i))
			}
			f.put(born(grouped("a", "edge", 80), 0))
			f.put(born(grouped("b", "edge", 81), 1))
			f.rest()
			if byHand {
				clb := f.onlyCLB()
				f.deleteListener(clb, 81)
				for _, group := range testkit.Must(f.api.DescribeVServerGroups(t.Context(), clb))(t) {
					if strings.Contains(group.Name, "/b/") {
						testkit.Check(t, f.api.DeleteVServerGroup(t.Context(), group.ID))
					}
				}
			} else {
				f.fault(map[string]any{"action": "DeleteVServerGroup", "drop": "after", "times": 1})
			}
			f.change("b", deleteService)
			f.rest()
			f.put(born(grouped("c", "edge", 82), 2))
			f.put(born(grouped("d", "edge", 83), 3))
			time.Sleep(30 * time.Second)
			synctest.Wait()
			for name, port := range map[string]string{"c": "30082", "d": "30083"} {
				if n := len(f.backendsOf(name)[port]); n < members/4 {
					t.Errorf("by hand %v: Service %s has %d backend servers after 30 seconds, want %d", byHand, name, n, members/4)
				}
			}
		})
	}
}
