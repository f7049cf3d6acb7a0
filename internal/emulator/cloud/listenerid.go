package cloud

import (
	"net"
	"strconv"
	"strings"
)

// ListenerID names a listener of any load balancer.
type ListenerID struct {
	LoadBalancerID string
	// ID is that of a listener of NLB; "" for those of CLB, which have none.
	ID string
	// ListenerKey has the protocol in lower case and, for a range, the first port.
	ListenerKey
}

// String is protocol and port.
func (l ListenerID) String() string { return l.Protocol + "/" + strconv.Itoa(l.Port) }

// ListenerID names a listener of a CLB.
func (lb *LoadBalancer) ListenerID(key ListenerKey) ListenerID {
	return ListenerID{LoadBalancerID: lb.ID, ListenerKey: key}
}

// ListenerID names a listener of an NLB.
func (l *NLBListener) ListenerID() ListenerID {
	first, _ := l.Ports()
	return ListenerID{LoadBalancerID: l.LoadBalancerID, ID: l.ID, ListenerKey: ListenerKey{Port: first, Protocol: strings.ToLower(l.Protocol)}}
}

// BackendID names a backend server of a group of any load balancer: its entry without what may change.
type BackendID struct {
	ServerID, ServerIP string
	// Port is 0 for a backend server that gets connections on the port that the client used.
	Port int
}

// String tells backend servers apart, also those of one server.
func (b BackendID) String() string {
	return b.ServerID + "/" + net.JoinHostPort(b.ServerIP, strconv.Itoa(b.Port))
}

// BackendID names a backend server of CLB.
func (b Backend) BackendID() BackendID { return BackendID{b.ServerID, b.ServerIP, b.Port} }

// BackendID names a backend server of NLB.
func (s *NLBServer) BackendID() BackendID { return BackendID{s.ID, s.IP, s.Port} }

// Health is what the checks of a listener have found out about a backend server.
type Health struct {
	// Status is HealthNormal, HealthAbnormal or HealthUnavailable.
	Status string
	// Reason is why the last check failed, in the words of NLB; "" when it did not.
	Reason string
}

// Health of a backend server, as DescribeHealthStatus of CLB spells it.
const (
	HealthNormal   = "normal"
	HealthAbnormal = "abnormal"
	// HealthUnavailable means that nothing is known: the listener does not check, or the checks have not reached a threshold.
	HealthUnavailable = "unavailable"
)
