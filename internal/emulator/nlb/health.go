package nlb

import (
	"strings"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

type (
	unhealthyView struct { //nolint:revive // names on the wire
		ServerId, ServerIp, Status string
		Port                       int
		Reason                     struct{ ReasonCode string }
	}
	groupHealthView struct { //nolint:revive // names on the wire; the misspelled one is the API's own
		ServerGroupId     string
		HeathCheckEnabled bool
		NonNormalServers  []unhealthyView
		ActionType        string
	}
	listenerHealthView struct { //nolint:revive // names on the wire
		ListenerId, ListenerProtocol string
		ListenerPort                 int
		ServerGroupInfos             []groupHealthView
	}
)

// listenerHealth shows every server that is not healthy.
func (s service) listenerHealth(c *api.Call) (any, error) {
	l, err := s.findListener(c)
	if err != nil {
		return nil, err
	}
	health := groupHealthView{ServerGroupId: l.GroupID, NonNormalServers: []unhealthyView{}, ActionType: "Forward"}
	if g, ok := s.NLBGroups.Get(l.GroupID); ok {
		health.HeathCheckEnabled = g.HealthCheck.Enabled
		if g.Protocol == udp {
			c.Holds("network.nlb-udp-by-tcp") // its switch decides
		}
		for _, v := range g.LiveServers(c.Now) {
			if status, reason := s.NLBHealth(l, g, v); status != cloud.NLBHealthy {
				bad := unhealthyView{ServerId: v.ID, ServerIp: v.IP, Port: v.Port, Status: status}
				bad.Reason.ReasonCode = reason
				if !c.Holds("network.nlb-health-words") {
					bad.Status = strings.ToLower(status)
				}
				health.NonNormalServers = append(health.NonNormalServers, bad)
			}
		}
	}
	return struct {
		ListenerHealthStatus []listenerHealthView
		NextToken            string
		TotalCount           int
	}{[]listenerHealthView{{l.ID, l.Protocol, l.Port, []groupHealthView{health}}}, "", 1}, nil
}
