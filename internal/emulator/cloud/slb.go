package cloud

import (
	"slices"
	"time"
)

// LoadBalancer is a CLB instance.
type LoadBalancer struct {
	Object
	Tagged
	Name, Status                    string
	Address, AddressType, IPVersion string
	NetworkType, VPCID, VSwitchID   string
	MasterZoneID, SlaveZoneID       string
	InternetChargeType, Spec        string
	InstanceChargeType, PayType     string
	Bandwidth                       int
	ResourceGroupID                 string
	DeleteProtection                string
	ModificationProtection          string
	ModificationProtectionReason    string
	SupportPrivateLink              bool
	// PendingChargeType comes into force at ChargeTypeFrom; "" when no change is due.
	PendingChargeType string
	ChargeTypeFrom    time.Time
	Listeners         Listeners
	// Groups are the ids of its vServer groups, in the order of creation.
	Groups []string
}

// ChargeTypeAt is the internet charge type in force at a moment.
func (lb *LoadBalancer) ChargeTypeAt(t time.Time) string {
	if lb.PendingChargeType != "" && !t.Before(lb.ChargeTypeFrom) {
		return lb.PendingChargeType
	}
	return lb.InternetChargeType
}

// Statuses of a CLB and of its listeners.
const (
	Active   = "active"
	Inactive = "inactive"
	Locked   = "locked"

	ListenerStopped  = "stopped"
	ListenerStarting = "starting"
	ListenerRunning  = "running"
	ListenerStopping = "stopping"
)

// ListenerKey identifies a listener: TCP and UDP may share a port, the TCP-based protocols may not.
type ListenerKey struct {
	Port     int
	Protocol string
}

// Listener is one listener of a CLB.
type Listener struct {
	Object
	ListenerKey
	Description   string
	ServerGroupID string
	// Attributes are the values of the protocol's attribute table, as strings.
	Attributes map[string]string
	Tags       Tags
	Phase      Phase
	// BusyUntil is when the last change has settled; another change before that gets a busy code.
	BusyUntil time.Time
	// Refused counts the changes that were refused as too early; the codes of the refusals take turns by it.
	Refused int
}

// SortedListeners returns the listeners by port, then protocol.
func (lb *LoadBalancer) SortedListeners() []*Listener {
	listeners := make([]*Listener, 0, len(lb.Listeners))
	for _, l := range lb.Listeners {
		listeners = append(listeners, l)
	}
	slices.SortFunc(listeners, func(a, b *Listener) int {
		if a.Port != b.Port {
			return a.Port - b.Port
		}
		if a.Protocol < b.Protocol {
			return -1
		}
		return 1
	})
	return listeners
}

// ServerGroup is a vServer group of a CLB.
type ServerGroup struct {
	Object
	Tagged
	Name, LoadBalancerID string
	Backends             []Backend
	// BusyUntil is when the last change of backend servers has settled.
	BusyUntil time.Time
	// BoundUntil is when a listener that was deleted lets go of the group.
	BoundUntil time.Time
	// Refused counts the changes that were refused as too early; the codes of the refusals take turns by it.
	Refused int
}

// Backend is a backend server of a vServer group. Its identity is server, address and port.
type Backend struct {
	ServerID, ServerIP, Type string
	Port, Weight             int
	Description              string
}

// UsedBy returns the listeners that send to a group.
func (lb *LoadBalancer) UsedBy(groupID string) []*Listener {
	var users []*Listener
	for _, l := range lb.SortedListeners() {
		if l.ServerGroupID == groupID {
			users = append(users, l)
		}
	}
	return users
}

// BackendCount counts the backend servers of all groups of a CLB, which share one quota.
func (s *Store) BackendCount(lb *LoadBalancer) int {
	n := 0
	for _, id := range lb.Groups {
		if g, ok := s.ServerGroups.Get(id); ok {
			n += len(g.Backends)
		}
	}
	return n
}

// SetBackends replaces the backend servers of a group and keeps count of which servers are behind which load balancers.
func (s *Store) SetBackends(g *ServerGroup, backends []Backend) {
	s.attach(g.LoadBalancerID, g.Backends, -1)
	s.attach(g.LoadBalancerID, backends, 1)
	g.Backends = backends
}

func (s *Store) attach(lb string, backends []Backend, by int) {
	for _, b := range backends {
		of := s.attached[b.ServerID]
		if of == nil {
			of = map[string]int{}
			s.attached[b.ServerID] = of
		}
		if of[lb] += by; of[lb] == 0 {
			delete(of, lb)
		}
		if len(of) == 0 {
			delete(s.attached, b.ServerID)
		}
	}
}

// AttachedTo counts the load balancers that a server is behind, not counting one of them.
func (s *Store) AttachedTo(serverID, except string) int {
	of := s.attached[serverID]
	if of[except] > 0 {
		return len(of) - 1
	}
	return len(of)
}

// RemoveGroup deletes a group with its backend servers.
func (s *Store) RemoveGroup(g *ServerGroup) {
	s.SetBackends(g, nil)
	s.ServerGroups.Delete(g)
}

// RemoveLoadBalancer deletes a CLB with its listeners and groups. The caller holds the lock.
func (s *Store) RemoveLoadBalancer(lb *LoadBalancer) {
	for _, id := range lb.Groups {
		if g, ok := s.ServerGroups.Get(id); ok {
			s.RemoveGroup(g)
		}
	}
	for _, x := range s.Extensions.Select(func(x *DomainExtension) bool { return x.LoadBalancerID == lb.ID }) {
		s.Extensions.Delete(x)
	}
	if lb.VSwitchID != "" {
		s.ReleaseAddress(lb.VSwitchID, lb.Address)
	}
	s.LoadBalancers.Delete(lb)
}
