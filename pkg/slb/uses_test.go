package slb

import (
	"maps"
	"testing"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/quota"
)

// TestUsesOfSharedCLB: each Service of a group knows the vServer groups of its own, which together are all of the CLB's, and all listeners.
func TestUsesOfSharedCLB(t *testing.T) {
	t.Parallel()
	w := groupWorld(t, grouped("web", "edge", 80, 82), grouped("shop", "edge", 81), grouped("blog", "edge", 83))
	servers := map[string]int{}
	for _, name := range []string{"web", "shop", "blog"} {
		w.fillGroups()
		svc := w.get(name)
		e := NewEngine(w.api, w.config, w.factory.Core().V1().Services().Lister()).(*engine)
		params, _ := e.Params(svc)
		found, err := e.Start().Refresh(t.Context(), driver.Request{Service: svc, Params: params, Adopted: true})
		if err != nil {
			t.Fatal(err)
		}
		for _, use := range found.Balancer.Uses() {
			switch {
			case use.Code == quota.BackendsPerCLB:
				servers[use.Part] = use.Used
			case use.Code == quota.ListenersPerCLB && (use.Used != 4 || use.Part != ""):
				t.Errorf("%s: %+v, want 4 listeners", name, use)
			}
		}
	}
	total := 0
	for n := range maps.Values(servers) {
		total += n
	}
	if len(servers) != 4 || total != 12 {
		t.Errorf("backend servers by vServer group %v, want 12 in 4", servers)
	}
}
