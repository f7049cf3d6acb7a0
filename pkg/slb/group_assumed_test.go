package slb

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/backend"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/config"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/quota"
)

// refused returns how many calls the cloud has refused, and how many have removed backend servers, since it was last asked.
func (f *fleet) refused() (refused, removals int) {
	for _, call := range f.emulator.NewCalls() {
		switch {
		case call.Code != "":
			refused++
		case call.Action == removeServers:
			removals++
		}
	}
	return refused, removals
}

// members returns how many backend servers each vServer group has.
func (f *fleet) members() map[string]int {
	members := map[string]int{}
	for _, lb := range f.state() {
		for group, servers := range lb.Groups {
			members[group] = len(servers)
		}
	}
	return members
}

// TestAssumedQuotaTakesNothingAway: the Quota Center says how many backend servers a CLB takes, and two Services of a group have more than
// half of that published each. Then the Quota Center shows less, or a new process does not know better. The CLB shows that the quota is
// larger: no backend server leaves. A third Service is served, too.
func TestAssumedQuotaTakesNothingAway(t *testing.T) {
	t.Parallel()
	const assumed, members = 80, 60
	know := func(value int) *quota.Book {
		book := quota.NewBook(nil)
		book.Read(map[quota.Code]quota.Reading{quota.BackendsPerCLB: {Value: value}})
		return book
	}
	for _, test := range []struct {
		name           string
		quota          int
		local, restart bool
	}{
		{"Cluster, a new process", 5 * assumed, false, true},
		{"Local, a new process", 5 * assumed, true, true},
		{"Cluster, a smaller value", 5 * assumed, false, false},
		{"Local, a smaller value", 5 * assumed, true, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFleetIn(t, cloud.Limits{BackendsPerLB: test.quota}, config.Config{BackendSubset: backend.SubsetAuto, Quotas: know(test.quota)})
				defer func() { f.stop() }()
				pods := map[int]int{}
				for i := range members {
					f.createFleetNode(nodeName(i))
					pods[i] = 1
				}
				create := func(i int) {
					svc := born(grouped(nameOfSharing(i), "edge", int32(80+i)), int64(i)) //nolint:gosec // a port
					if test.local {
						svc.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
						f.setPods(svc, pods)
					}
					annotate(svc, annotation.BackendSubset, fmt.Sprint(members))
					f.put(svc)
					time.Sleep(30 * time.Minute)
				}
				create(0)
				create(1)
				before := f.members()
				if test.restart {
					f.stop()
					f.config.Quotas = know(assumed)
					f.start()
				} else {
					f.config.Quotas.Read(map[quota.Code]quota.Reading{quota.BackendsPerCLB: {Value: assumed}})
				}
				f.createFleetNode("zz-new") // wakes all Services, as a changed quota does
				time.Sleep(30 * time.Minute)
				for group, n := range before {
					if after := f.members()[group]; n < members || after < n {
						t.Errorf("%s had %d backend servers, and has %d", group, n, after)
					}
				}
				create(2)
				for group, n := range f.members() {
					if n < assumed/4 || before[group] > 0 && n < before[group] && test.quota > 2*members {
						t.Errorf("%s had %d backend servers, and has %d beside a third Service", group, before[group], n)
					}
				}
				if n := len(f.members()); n != 3 {
					t.Errorf("%d Services have a vServer group", n)
				}
			})
		})
	}
}
