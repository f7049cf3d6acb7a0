package emulator

import (
	"net/http"
	"slices"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/ecs"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/fabric"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/nlb"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/slb"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/vpc"
)

// getState answers everything that exists, as the API would describe it, with the addresses of the loopback network
// added.
func (e *Emulator) getState(w http.ResponseWriter, _ *http.Request) {
	var state api.Object
	e.store.View(func() {
		now := e.store.Now()
		where := slb.Where{
			Address:  e.fabric.LoopbackAddress,
			Endpoint: e.fabric.Endpoint,
			Elastic:  func(lb *cloud.LoadBalancer, k cloud.ListenerKey) any { return e.elastic(lb, k) },
		}
		state = append(state, ecs.State(e.store, now, e.fabric.LoopbackAddress)...)
		state = append(state, vpc.State(e.store, now)...)
		state = append(state, slb.State(e.store, now, where)...)
		state = append(state, nlb.State(e.store, now, nlb.Where{
			Addresses: func(lb *cloud.NLB) any { return fabric.AddressesOf(lb, now) },
			Endpoints: func(l cloud.ListenerID) any { return e.fabric.Endpoints(l) },
		})...)
	})
	reply(w, http.StatusOK, state)
}

// elastic are the endpoints of a listener of a CLB on addresses other than its own.
func (e *Emulator) elastic(lb *cloud.LoadBalancer, key cloud.ListenerKey) []fabric.Endpoint {
	return slices.DeleteFunc(e.fabric.Endpoints(lb.ListenerID(key)), func(p fabric.Endpoint) bool { return p.Address == lb.Address })
}
