package slb

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/backend"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/quota"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/model"
)

// portRoom returns which ports of the Service the CLB has room for.
func (c clb) portRoom(in driver.Inputs) backend.PortRoom {
	ports := in.Service.Spec.Ports
	if c.Reused() && !in.Params.OverridesListeners() {
		return backend.PortRoom{Ports: ports} // their listeners are somebody else's matter
	}
	clusterID, _ := c.markedOn(in.Service, serverOf(in))
	owner := mark.OwnerOf(in.Service, clusterID)
	listeners := []model.Listener(nil)
	if actual := c.wholeModel(); actual != nil {
		listeners = actual.Listeners
	}
	limit := c.config.Quotas.Limit(quota.ListenersPerCLB)
	if limit.Source == quota.Published {
		return backend.PortRoom{Ports: ports} // the account may have a higher one, and after a refusal, creations pause
	}
	on := backend.Listeners{All: len(listeners), Quota: limit.Value, Code: string(quota.ListenersPerCLB), Assumed: limit.Assumed}
	if c.Group.IsZero() { // the room of those who share a CLB is decided together, and those who leave may still have listeners
		for i := range listeners {
			if !owner.Owns(listeners[i].Description) {
				on.Others++
			}
		}
	}
	return backend.PortRoomOf(ports, on, func(port corev1.ServicePort) backend.Listening {
		at := slices.IndexFunc(listeners, func(l model.Listener) bool {
			return l.Port == int(port.Port) && (l.Protocol == alicloud.ProtocolUDP) == (port.Protocol == corev1.ProtocolUDP)
		})
		switch {
		case at < 0:
			return backend.NoListener
		case owner.Owns(listeners[at].Description):
			return backend.OwnListener
		}
		return backend.OthersListener
	})
}
