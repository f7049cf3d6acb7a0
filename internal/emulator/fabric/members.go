package fabric

import (
	"net"
	"strconv"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

// member is a backend of a listener's group: who it is, where it is, and how much it should get.
type member struct {
	backend          backend
	instanceID, addr string
	weight           int
	// unreachable says why its machine cannot be reached; "" means that it can.
	unreachable string
}

// backend is the identity of a backend server: its entry without what may change.
type backend struct {
	serverID, serverIP string
	port               int
}

func backendOf(b cloud.Backend) backend { return backend{b.ServerID, b.ServerIP, b.Port} }

// membersOf are all backend servers of a listener's group, resolved. The caller holds the store's lock.
func (f *Fabric) membersOf(lb *cloud.LoadBalancer, l *cloud.Listener, now time.Time) []member {
	g, ok := f.store.ServerGroups.Get(l.ServerGroupID)
	if !ok {
		return nil
	}
	members := make([]member, 0, len(g.Backends))
	for _, b := range g.Backends {
		members = append(members, f.member(lb, b, now))
	}
	return members
}

// member resolves a backend to a machine: an ecs member is the instance's own address, an eni member an address of an
// interface, and anything else is found as the VPC's system route table says.
func (f *Fabric) member(lb *cloud.LoadBalancer, b cloud.Backend, now time.Time) member {
	m := member{backend: backendOf(b), addr: net.JoinHostPort(b.ServerIP, strconv.Itoa(b.Port)), weight: b.Weight}
	switch b.Type {
	case "ecs":
		m.instanceID = b.ServerID
		if i, ok := f.store.Instances.Get(b.ServerID); ok {
			m.addr = net.JoinHostPort(i.PrivateIP, strconv.Itoa(b.Port))
		}
	case "eni":
		if eni, ok := f.store.Interfaces.Get(b.ServerID); ok {
			m.instanceID = eni.InstanceID
		}
	default:
		m.instanceID = f.routedTo(lb, b.ServerIP, now)
	}
	_, m.unreachable = f.machine(m.instanceID, now)
	return m
}

// routedTo finds the instance that the first route table of the load balancer's VPC sends an address to.
func (f *Fabric) routedTo(lb *cloud.LoadBalancer, ip string, now time.Time) string {
	host, _, err := split(net.JoinHostPort(ip, "0"))
	if err != nil {
		return ""
	}
	for _, t := range f.store.TablesOf(lb.VPCID) {
		next, reason := f.route(t, host, now)
		if reason == "" {
			return next.instanceID
		}
	}
	return ""
}

// eligible are the backend servers that new connections may go to: weight above 0, the machine running and no failed check. A
// member whose checks have not finished gets connections: the first ones must not wait for an interval times a threshold.
func (f *Fabric) eligible(key socketKey, members []member) []member {
	var fit []member
	for _, m := range members {
		if m.weight > 0 && m.unreachable == "" && f.health.status(probeKey{key, m.backend}) != Abnormal {
			fit = append(fit, m)
		}
	}
	return fit
}

func without(members []member, tried member) []member {
	left := make([]member, 0, len(members)-1)
	for _, m := range members {
		if m.addr != tried.addr {
			left = append(left, m)
		}
	}
	return left
}
