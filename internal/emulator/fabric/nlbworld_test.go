package fabric

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

// nlbWorld is a world with an NLB in two zones, and a server group.
type nlbWorld struct {
	*world
	nlb  *cloud.NLB
	pool *cloud.NLBGroup
}

// Addresses of the NLB.
const (
	vipA, vipB = "10.1.210.1", "10.2.210.1"
	zoneA      = "cn-hangzhou-a"
	zoneB      = "cn-hangzhou-b"
	nlbName    = "nlb-under-test.cn-hangzhou.nlb.aliyuncsslb.com"
)

func newNLBWorld(t *testing.T) *nlbWorld {
	t.Helper()
	return asNLBWorld(newWorld(t))
}

func asNLBWorld(w *world) *nlbWorld {
	n := &nlbWorld{world: w}
	w.store.Update(func() {
		n.nlb = &cloud.NLB{
			Object: w.store.NewObject("nlb"), DNSName: nlbName, VPCID: "vpc-emulator", AddressType: "Intranet", IPv6AddressType: "Intranet",
			CrossZone: true, Phase: cloud.Steady(cloud.NLBActive),
			Zones: []cloud.NLBZone{
				{ZoneID: zoneA, VSwitchID: "vsw-a", PrivateIP: vipA, Status: cloud.NLBActive},
				{ZoneID: zoneB, VSwitchID: "vsw-b", PrivateIP: vipB, Status: cloud.NLBActive},
			},
		}
		w.store.NLBs.Add(n.nlb)
		n.pool = &cloud.NLBGroup{
			Object: w.store.NewObject("sgp"), VPCID: "vpc-emulator", Type: "Instance", Protocol: "TCP", Scheduler: "Wrr", PreserveClientIP: true,
			Phase: cloud.Steady(cloud.Available),
		}
		w.store.NLBGroups.Add(n.pool)
	})
	return n
}

// open starts a listener; change may be nil.
func (w *nlbWorld) open(protocol string, port int, change func(*cloud.NLBListener)) *cloud.NLBListener {
	w.t.Helper()
	l := &cloud.NLBListener{
		LoadBalancerID: w.nlb.ID, Port: port, Protocol: protocol, GroupID: w.pool.ID, IdleTimeout: 900, Phase: cloud.Steady(cloud.Running),
	}
	w.store.Update(func() {
		l.Object = w.store.NewObject("lsn")
		if change != nil {
			change(l)
		}
		w.store.NLBListeners.Add(l)
	})
	w.Sync()
	return l
}

// change changes what the store has, as a call would.
func (w *nlbWorld) change(f func()) {
	w.store.Update(f)
	w.Sync()
}

// servers replaces the backend servers of the group.
func (w *nlbWorld) servers(servers ...*cloud.NLBServer) {
	w.change(func() { w.pool.Servers = servers })
}

func ecsServer(id string, port, weight int) *cloud.NLBServer {
	zone := zoneA
	if strings.HasSuffix(id, "-b") {
		zone = zoneB
	}
	return &cloud.NLBServer{ID: id, Type: "Ecs", Port: port, Weight: weight, ZoneID: zone, Phase: cloud.Steady(cloud.Available)}
}

// where is the socket of a listener on an address and a port; "" when there is none.
func (w *nlbWorld) where(l *cloud.NLBListener, address string, port int) string {
	for _, e := range w.Endpoints(l.ListenerID()) {
		if e.Address == address && e.Port == port {
			return e.LoopbackEndpoint
		}
	}
	return ""
}

// at is the socket of a listener on the address of the first zone.
func (w *nlbWorld) at(l *cloud.NLBListener) string {
	w.t.Helper()
	where := w.where(l, vipA, l.ListenerID().Port)
	if where == "" {
		w.t.Fatal("the listener has no socket")
	}
	return where
}

func (w *nlbWorld) health(l *cloud.NLBListener, s *cloud.NLBServer) cloud.Health {
	found, _ := w.Health(l.ListenerID(), s.BackendID())
	return found
}

func texts(addresses []netip.Addr) []string {
	var all []string
	for _, a := range addresses {
		all = append(all, a.String())
	}
	slices.Sort(all)
	return all
}
