package nlb

import (
	"maps"
	"testing"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/quota"
)

// TestUsesOfSharedNLB: each Service of a group knows the server groups of its own, which together are all of the NLB's, and all listeners.
func TestUsesOfSharedNLB(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.groupWorld(grouped("web", "edge", 1, testkube.TCP(80, 82)), grouped("shop", "edge", 2, testkube.TCP(81)),
			grouped("blog", "edge", 3, testkube.TCP(83)))
		servers := map[string]int{}
		for _, name := range []string{"web", "shop", "blog"} {
			w.fillServices()
			svc := w.get(name)
			params, _ := w.engine.Params(svc)
			found, err := w.engine.Start().Refresh(t.Context(), driver.Request{Service: svc, Params: params, Adopted: true})
			if err != nil {
				t.Fatal(err)
			}
			for _, use := range found.Balancer.Uses() {
				switch {
				case use.Code == quota.ServersPerNLB:
					servers[use.Part] = use.Used
				case use.Code == quota.ListenersPerNLB && (use.Used != 4 || use.Part != ""):
					t.Errorf("%s: %+v, want 4 listeners", name, use)
				}
			}
		}
		total := 0
		for n := range maps.Values(servers) {
			total += n
		}
		if len(servers) != 4 || total != 8 {
			t.Errorf("backend servers by server group %v, want 8 in 4", servers)
		}
	})
}
