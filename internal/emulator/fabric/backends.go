package fabric

import (
	"net"
	"net/netip"
	"strconv"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

// target is a backend server of a listener's group as the store has it.
type target struct {
	id cloud.BackendID
	// kind is ecs, eni, or anything else for an address in the VPC.
	kind   string
	weight int
	// zone is "" where the product does not know it.
	zone string
}

// backend is a backend server of a listener's group: who it is, where it is, and how much it should get.
type backend struct {
	id               cloud.BackendID
	instanceID, addr string
	weight           int
	// zone is where it is; one without a zone serves all of them.
	zone string
	// unreachable says why its machine cannot be reached; "" means that it can.
	unreachable string
}

// backend resolves a backend server to a machine: an ecs one is at the instance's own address, an eni one at an address of an
// interface, and anything else is found as the VPC's system route table says.
func (f *Fabric) backend(t target, vpcID string, now time.Time) backend {
	ip := t.id.ServerIP
	m := backend{id: t.id, weight: t.weight, zone: t.zone}
	switch t.kind {
	case "ecs":
		m.instanceID = t.id.ServerID
		if i, ok := f.store.Instances.Get(t.id.ServerID); ok {
			ip = i.PrivateIP
		}
	case "eni":
		if eni, ok := f.store.Interfaces.Get(t.id.ServerID); ok {
			m.instanceID = eni.InstanceID
		}
	default:
		m.instanceID = f.routedTo(vpcID, ip, now)
		if eni, ok := f.store.InterfaceByIP(vpcID, ip); ok {
			m.instanceID = eni.InstanceID
			m.zone = cloud.OrDefault(m.zone, eni.ZoneID)
		}
	}
	m.addr = net.JoinHostPort(ip, strconv.Itoa(t.id.Port))
	_, m.unreachable = f.machine(m.instanceID, now)
	return m
}

// at is the backend server on the port that the client used, where its group has servers for any port.
func (m backend) at(port int) backend {
	if m.id.Port == 0 {
		// The address was joined from its parts.
		host, _, _ := net.SplitHostPort(m.addr)
		m.addr = net.JoinHostPort(host, strconv.Itoa(port))
	}
	return m
}

// routedTo finds the instance that the first route table of a VPC sends an address to.
func (f *Fabric) routedTo(vpcID, ip string, now time.Time) string {
	host, err := netip.ParseAddr(ip)
	if err != nil {
		return ""
	}
	for _, t := range f.store.TablesOf(vpcID) {
		next, reason := f.route(t, host, now)
		if reason == "" {
			return next.instanceID
		}
	}
	return ""
}

// eligible are the backend servers that new connections to a VIP may go to: weight above 0, the machine running and no failed check, and
// where the load balancer does not cross zones, in that of the VIP. One whose checks have not finished gets connections: the first ones
// must not wait for an interval times a threshold.
func (f *Fabric) eligible(s settings, v VIP, backends []backend) []backend {
	var fit, failed []backend
	for _, m := range backends {
		switch {
		case m.weight == 0 || m.unreachable != "" || !f.serves(s, m, v):
		case !f.passes(s, m):
			failed = append(failed, m)
		default:
			fit = append(fit, m)
		}
	}
	if len(fit) == 0 && len(failed) > 0 && f.bestEffort(s) {
		return failed
	}
	return fit
}

// bestEffort reports whether all backend servers get connections when the checks of all of them fail.
// Source: https://www.alibabacloud.com/help/en/slb/network-load-balancer/user-guide/nlb-health-check-overview
func (f *Fabric) bestEffort(s settings) bool {
	if s.isNLB() {
		return f.holds("network.nlb-all-failed")
	}
	return !f.holds("network.all-failed")
}

// passes reports whether the checks of a backend server let new connections through.
func (f *Fabric) passes(s settings, m backend) bool {
	switch f.health.status(probeKey{s.key, m.id}) {
	case Abnormal:
		return !f.holds("network.failed-server")
	case Unavailable:
		return !f.listen || s.check.kind == "" || f.holds("network.undecided-server")
	}
	return true
}

func without(backends []backend, tried backend) []backend {
	left := make([]backend, 0, len(backends)-1)
	for _, m := range backends {
		if m.id != tried.id {
			left = append(left, m)
		}
	}
	return left
}
