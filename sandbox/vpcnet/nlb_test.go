//go:build linux

package vpcnet

import (
	"net"
	"net/netip"
	"testing"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// nlb is an NLB in both zones, with a listener of TCP and one of UDP on port 80, and one of TCP on a range of ports.
type nlb struct {
	alicloud.NLB
	groups []string
}

func (w *world) nlb(addressType string, servers ...string) nlb {
	w.t.Helper()
	ctx, api := w.t.Context(), w.api
	id := testkit.Must(api.CreateNLB(ctx, alicloud.NLB{VPCID: "vpc-emulator", AddressType: addressType, Zones: []alicloud.NLBZone{
		{ZoneID: "cn-hangzhou-a", VSwitchID: "vsw-a"}, {ZoneID: "cn-hangzhou-b", VSwitchID: "vsw-b"},
	}}, w.t.Name()))(w.t)
	made, off := nlb{NLB: testkit.Must(api.GetNLB(ctx, id))(w.t)}, false
	for _, l := range []alicloud.NLBListener{
		{Port: 80, Protocol: alicloud.NLBTCP}, {Port: 80, Protocol: alicloud.NLBUDP},
		{StartPort: 30079, EndPort: 30081, Protocol: alicloud.NLBTCP},
	} {
		port := 30080
		if l.Port == 0 {
			port = 0
		}
		token := w.t.Name() + l.Protocol + string(rune('a'+len(made.groups)))
		group, _, err := api.CreateNLBGroup(ctx, alicloud.NLBGroup{
			Name: token, VPCID: "vpc-emulator", Protocol: l.Protocol, AnyPort: port == 0,
			NLBGroupSettings: alicloud.NLBGroupSettings{HealthCheck: alicloud.NLBHealthCheck{Enabled: &off}},
		}, token)
		w.check(err)
		var all []alicloud.NLBServer
		for _, server := range servers {
			all = append(all,
				alicloud.NLBServer{NLBServerKey: alicloud.NLBServerKey{ID: server, Type: alicloud.NLBServerECS, Port: port}, Weight: 100})
		}
		_, err = api.AddNLBServers(ctx, group, all)
		w.check(err)
		l.LoadBalancerID, l.ServerGroupID = id, &group
		_, _, err = api.CreateNLBListener(ctx, l, token)
		w.check(err)
		made.groups = append(made.groups, group)
	}
	return made
}

func TestZonesOfAnNLBCarryPackets(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	lb := s.nlb(alicloud.NLBInternet, "i-1")
	for _, zone := range lb.Zones {
		for _, network := range []string{"tcp", "udp"} {
			for _, ns := range []*Namespace{s.two, s.inside} {
				s.answers(ns, network, net.JoinHostPort(zone.PrivateIPv4, "80"), "one")
			}
			for want, ns := range map[netip.Addr]*Namespace{insideAddress: s.inside, internetAddress: s.internet} {
				if got := s.answers(ns, network, net.JoinHostPort(zone.PublicIPv4, "80"), "one"); got.Addr() != want {
					t.Errorf("%s: the backend server sees %s, want the client %s", network, got, want)
				}
			}
		}
		s.answers(s.internet, "tcp", net.JoinHostPort(zone.PublicIPv4, "30080"), "one")
		s.unreachable(s.internet, net.JoinHostPort(zone.PrivateIPv4, "80"))
	}
	_, err := s.api.SetNLBAddressType(t.Context(), lb.ID, alicloud.NLBIntranet, nil)
	s.check(err)
	s.answers(s.inside, "tcp", net.JoinHostPort(lb.Zones[1].PrivateIPv4, "80"), "one")
	s.unreachable(s.internet, net.JoinHostPort(lb.Zones[1].PublicIPv4, "80"))
}

func TestNLBHidesClientsWhereTheGroupSaysSo(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	lb, off := s.nlb(alicloud.NLBIntranet, "i-1"), false
	_, err := s.api.UpdateNLBGroup(t.Context(), lb.groups[0], alicloud.NLBGroupSettings{PreserveClientIP: &off})
	s.check(err)
	vip := net.JoinHostPort(lb.Zones[0].PrivateIPv4, "80")
	if got := s.answers(s.inside, "tcp", vip, "one"); !services.Contains(got.Addr()) {
		t.Errorf("the backend server sees %s, want the load balancer", got)
	}
	// Behind the load balancer's own address, a backend server can be its own client.
	s.answers(s.one, "tcp", vip, "one")
}

func TestNLBWithinItsZones(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.serve(s.two, "two", "0.0.0.0:30080")
	lb, off := s.nlb(alicloud.NLBIntranet, "i-1", "i-2"), false
	_, err := s.api.UpdateNLB(t.Context(), lb.ID, alicloud.NLBAttributes{CrossZone: &off})
	s.check(err)
	for zone, name := range []string{"one", "two"} {
		vip := net.JoinHostPort(lb.Zones[zone].PrivateIPv4, "80")
		for range 4 {
			if who, _, err := ask(t.Context(), s.inside, "tcp", vip); err != nil || who != name {
				t.Errorf("%s answers at %s, %v; want %s of that zone", who, vip, err, name)
			}
		}
	}
}
