package cloud

// Health of a backend server of NLB. GetListenerHealthStatus returns all but the first.
// Source: https://www.alibabacloud.com/help/en/slb/api-getlistenerhealthstatus-nlb
const (
	NLBHealthy = "Healthy"
	// NLBInitial means that the checks have not reached a threshold.
	NLBInitial   = "Initial"
	NLBUnhealthy = "Unhealthy"
	// NLBUnused means that the weight is 0.
	NLBUnused = "Unused"
	// NLBUnavailable means that the group does not check.
	NLBUnavailable = "Unavailable"
)

// NLBHealth is the health of a backend server as a listener sees it, with the reason of a failed check. Without a network all that are
// checked answer, but for servers of UDP that are to accept connections on the same port.
func (s *Store) NLBHealth(l *NLBListener, g *NLBGroup, v *NLBServer) (status, reason string) {
	switch {
	case !g.HealthCheck.Enabled:
		return NLBUnavailable, ""
	case v.Weight == 0:
		return NLBUnused, ""
	}
	found, checked := Health{}, false
	if s.Health != nil {
		found, checked = s.Health(l.ListenerID(), v.BackendID())
	}
	byTCP := g.HealthCheck.Type != "UDP" && g.HealthCheck.ConnectPort == 0
	switch {
	case g.Protocol == "UDP" && byTCP && s.NLBUDPServersAnswerTCP:
		return NLBHealthy, ""
	case !checked && g.Protocol == "UDP" && byTCP:
		return NLBUnhealthy, "CONNECT_FAIL"
	case !checked || found.Status == HealthNormal:
		return NLBHealthy, ""
	case found.Status == HealthAbnormal:
		return NLBUnhealthy, found.Reason
	default:
		return NLBInitial, ""
	}
}
