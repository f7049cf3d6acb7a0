package fabric

import (
	"net/netip"
	"testing"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
)

func rule(policy, source string, priority int) cloud.SecurityRule {
	r := cloud.SecurityRule{Policy: policy, Protocol: "ALL", PortRange: "-1/-1", Priority: priority}
	if p, err := netip.ParsePrefix(source); err == nil && p.Addr().Is6() {
		r.IPv6SourceCIDR = source
	} else {
		r.SourceCIDR = source
	}
	return r
}

func only(r cloud.SecurityRule, protocol, ports string) cloud.SecurityRule {
	r.Protocol, r.PortRange = protocol, ports
	return r
}

func TestSecurityRules(t *testing.T) {
	t.Parallel()
	ranges := security{rule("accept", "203.0.113.0/24", 1), rule("drop", "0.0.0.0/0", 100)}
	tests := []struct {
		name    string
		rules   security
		source  string
		network string
		port    int
		want    bool
	}{
		{"no rules", nil, "192.0.2.1", "tcp", 80, true},
		{"accept rules alone restrict nothing", security{rule("accept", "203.0.113.0/24", 1)}, "192.0.2.1", "tcp", 80, true},
		{"inside a range", ranges, "203.0.113.9", "tcp", 80, true},
		{"mapped", ranges, "::ffff:203.0.113.9", "tcp", 80, true},
		{"outside", ranges, "192.0.2.1", "tcp", 80, false},
		{"a drop rule of IPv4 says nothing about IPv6", ranges, "2001:db8::1", "tcp", 80, true},
		{"IPv6 inside", append(ranges, rule("accept", "2001:db8::/64", 1), rule("drop", "::/0", 100)), "2001:db8::1", "tcp", 80, true},
		{"IPv6 outside", append(ranges, rule("accept", "2001:db8::/64", 1), rule("drop", "::/0", 100)), "2001:db8:1::1", "tcp", 80, false},
		{"the smallest priority decides", security{rule("drop", "203.0.113.0/24", 2), rule("accept", "203.0.113.9/32", 1)}, "203.0.113.9", "tcp",
			80, true},
		{"whatever the order", security{rule("accept", "203.0.113.9/32", 1), rule("drop", "203.0.113.0/24", 2)}, "203.0.113.9", "tcp", 80, true},
		{"drop wins at one priority", security{rule("drop", "203.0.113.0/24", 1), rule("accept", "203.0.113.0/24", 1)}, "203.0.113.9", "tcp", 80,
			false},
		{"and in the other order", security{rule("accept", "203.0.113.0/24", 1), rule("drop", "203.0.113.0/24", 1)}, "203.0.113.9", "tcp", 80,
			false},
		{"one address", security{rule("drop", "203.0.113.9", 1)}, "203.0.113.9", "tcp", 80, false},
		{"another protocol", security{only(rule("drop", "0.0.0.0/0", 1), "UDP", "-1/-1")}, "203.0.113.9", "tcp", 80, true},
		{"the protocol", security{only(rule("drop", "0.0.0.0/0", 1), "UDP", "-1/-1")}, "203.0.113.9", "udp", 80, false},
		{"another port", security{only(rule("drop", "0.0.0.0/0", 1), "TCP", "80/90")}, "203.0.113.9", "tcp", 91, true},
		{"the port", security{only(rule("drop", "0.0.0.0/0", 1), "TCP", "80/90")}, "203.0.113.9", "tcp", 90, false},
		{"no port range", security{only(rule("drop", "0.0.0.0/0", 1), "TCP", "all")}, "203.0.113.9", "tcp", 90, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			wantEqual(t, test.source, test.rules.admits(netip.MustParseAddr(test.source), test.network, test.port, false), test.want)
		})
	}
}

func TestNLBSecurityGroups(t *testing.T) {
	t.Parallel()
	w := newNLBWorld(t)
	one := newServer(t, "one", w.machine("i-a", "10.1.48.1"))
	echo := newEcho(t, w.LoopbackAddress("10.1.48.1"), prefixed("one "))
	l := w.open("TCP", 80, nil)
	w.servers(ecsServer("i-a", one.port(), 100))
	group := &cloud.SecurityGroup{Rules: []cloud.SecurityRule{rule("accept", "10.3.0.0/16", 1), rule("accept", "2001:db8::/64", 1)}}
	w.change(func() {
		group.Object = w.store.NewObject("sg")
		w.store.SecurityGroups.Add(group)
		w.nlb.SecurityGroups = []string{group.ID}
	})
	admitted := func(from string) bool {
		_, err := greeting(t, from, w.at(l))
		return err == nil
	}
	// The addresses of this host that stand for clients with IPv6 addresses.
	listed, other := w.LoopbackAddress("2001:db8::9"), w.LoopbackAddress("2001:db8:1::9")
	wantEqual(t, "without a drop rule", []bool{admitted("127.3.0.9"), admitted("127.4.0.9"), admitted(other)}, []bool{true, true, true})
	w.change(func() { group.Rules = append(group.Rules, rule("drop", "0.0.0.0/0", 100)) })
	wantEqual(t, "with one for IPv4", []bool{admitted("127.3.0.9"), admitted("127.4.0.9"), admitted(other)}, []bool{true, false, true})
	w.change(func() { group.Rules = append(group.Rules, rule("drop", "::/0", 100)) })
	wantEqual(t, "and one for IPv6", []bool{admitted(listed), admitted(other)}, []bool{true, false})
	c := testkit.Must(dialTo(t, "127.3.0.9", w.at(l)))(t)
	defer c.Close()
	testkit.Must(read(c))(t)
	w.change(func() { group.Rules = []cloud.SecurityRule{rule("drop", "10.3.0.0/16", 1)} })
	wantEqual(t, "new connections", admitted("127.3.0.9"), false)
	_, _ = c.Write([]byte("x"))
	if got, err := read(c); err != nil || got != "x" {
		t.Errorf("an established connection gets %q, %v", got, err)
	}
	w.change(func() { w.nlb.SecurityGroups = nil })
	wantEqual(t, "after leaving", admitted("127.3.0.9"), true)

	w.servers(ecsServer("i-a", echo, 100))
	w.change(func() {
		w.nlb.SecurityGroups = []string{group.ID}
		group.Rules = []cloud.SecurityRule{only(rule("drop", "0.0.0.0/0", 1), "TCP", "-1/-1")}
	})
	w.change(func() { w.pool.Protocol = "UDP" })
	wantEqual(t, "UDP beside a rule for TCP", datagrams(t, w.at(w.open("UDP", 80, nil)))("x"), "one x")
}
