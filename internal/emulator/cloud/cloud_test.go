package cloud

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestBadConfigs(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		want string
		edit func(*Config)
	}{
		{"region", "region", func(c *Config) { c.Region = "" }},
		{"preset", "observed", func(c *Config) { c.Preset = "some" }},
		{"vpc block", "vpcs[0]", func(c *Config) { c.VPCs[0].CIDR = "10/8" }},
		{"vpc twice", "vpcs[1]", func(c *Config) { c.VPCs = append(c.VPCs, c.VPCs[0]) }},
		{"no table", "vpc-2", func(c *Config) { c.VPCs = append(c.VPCs, VPCConfig{ID: "vpc-2", CIDR: "10.0.0.0/8"}) }},
		{"table of nothing", "routeTables[1]", func(c *Config) { c.RouteTables = append(c.RouteTables, RouteTableConfig{ID: "t", VPCID: "none"}) }},
		{"overlap", "overlaps", func(c *Config) { c.VSwitches[1].CIDR = "10.1.128.0/24" }},
		{"vSwitch of nothing", "vSwitches[0]", func(c *Config) { c.VSwitches[0].VPCID = "none" }},
		{"address in use", "instances[1]", func(c *Config) {
			c.Instances = []InstanceConfig{{ID: "a", PrivateIP: "10.1.0.1"}, {ID: "b", PrivateIP: "10.1.0.1"}}
		}},
		{"certificate", "certificates[0]", func(c *Config) { c.Certificates = []CertificateConfig{{ID: "c", Certificate: "x"}} }},
		{"acl", "acls[0]", func(c *Config) { c.ACLs = []ACLConfig{{ID: "a", Entries: []string{"office"}}} }},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			c := DefaultConfig()
			test.edit(c)
			if _, err := New(c, 0); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error = %v, want one that names %s", err, test.want)
			}
		})
	}
}

func TestLoadConfig(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "config.yaml")
	const text = `
region: cn-beijing
preset: published
quotas: {backendsPerLoadBalancer: 5}
vpcs: [{id: vpc-1, cidr: 192.168.0.0/16}]
vSwitches: [{id: vsw-1, vpcId: vpc-1, zoneId: cn-beijing-a, cidr: 192.168.0.0/24}]
routeTables: [{id: vtb-1, vpcId: vpc-1}, {id: vtb-2, vpcId: vpc-1}]
instances: [{id: i-1, name: master, vSwitchId: vsw-1, privateIp: 192.168.0.10}]
accessKeys: [{id: ak, secret: sk, permissions: ["slb:*"]}]
`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := LoadConfig(path)
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(c, 0)
	if err != nil {
		t.Fatal(err)
	}
	i, _ := s.Instances.Get("i-1")
	second, _ := s.RouteTables.Get("vtb-2")
	got := []any{s.Region, s.Limits.BackendsPerLB, s.Limits.BackendsPerCall, i.Name, i.PrivateIP, i.ZoneID, second.Type}
	if d := cmp.Diff([]any{"cn-beijing", 5, 20, "master", "192.168.0.10", "cn-beijing-a", "Custom"}, got); d != "" {
		t.Error(d)
	}
}

func TestAddresses(t *testing.T) {
	t.Parallel()
	s, err := New(DefaultConfig(), 0)
	if err != nil {
		t.Fatal(err)
	}
	v := &VSwitch{Prefix: netip.MustParsePrefix("10.9.0.0/29"), cursor: netip.MustParseAddr("10.9.0.0")}
	var got []string
	for {
		ip, err := s.TakeAddress(v, "")
		if errors.Is(err, ErrNoAddress) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, ip)
	}
	if d := cmp.Diff([]string{"10.9.0.1", "10.9.0.2", "10.9.0.3", "10.9.0.4"}, got); d != "" {
		t.Error(d)
	}
	v.release("10.9.0.2")
	if ip, err := s.TakeAddress(v, ""); ip != "10.9.0.2" {
		t.Errorf("a released address is not found again: %s, %v", ip, err)
	}
	if _, err := s.TakeAddress(v, "10.9.0.3"); !errors.Is(err, ErrAddressTaken) {
		t.Errorf("an address is given twice: %v", err)
	}
}

func TestPhase(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	p := Phase{now: Pending, then: Running, at: now}
	got := []any{p.At(now.Add(-1)), p.Settled(now.Add(-1)), p.At(now), p.Settled(now)}
	if d := cmp.Diff([]any{Pending, false, Running, true}, got); d != "" {
		t.Error(d)
	}
}

func TestTableKeepsOrder(t *testing.T) {
	t.Parallel()
	var table Table[*VPC]
	var all []*VPC
	for i := range 5 {
		v := &VPC{Object: Object{ID: string(rune('a' + i)), Seq: int64(i * 3)}}
		all = append(all, v)
		table.Add(v)
	}
	table.Delete(all[2])
	table.Delete(all[2])
	var got []string
	for v := range table.All() {
		got = append(got, v.ID)
	}
	if d := cmp.Diff([]string{"a", "b", "d", "e"}, got); d != "" {
		t.Error(d)
	}
	if _, ok := table.Get("c"); ok {
		t.Error("a deleted resource is found")
	}
}

func TestLookupTakesTheLongestPrefix(t *testing.T) {
	t.Parallel()
	now := time.Now()
	table := &RouteTable{}
	for _, cidr := range []string{"0.0.0.0/0", "10.244.0.0/16", "10.244.3.0/24"} {
		table.AddEntry(&RouteEntry{Object: Object{ID: cidr, Seq: int64(table.Entries.Len())}, CIDR: netip.MustParsePrefix(cidr), Phase: Steady(Available)})
	}
	e, _ := table.EntryByCIDR(netip.MustParsePrefix("10.244.3.0/24"))
	addr := netip.MustParseAddr("10.244.3.7")
	if got, _ := table.Lookup(addr, now); got != e {
		t.Errorf("entry = %s, want %s", got.CIDR, e.CIDR)
	}
	e.Phase = Phase{now: Pending, then: Available, at: now.Add(time.Hour)}
	if got, _ := table.Lookup(addr, now); got.ID != "10.244.0.0/16" {
		t.Errorf("a pending entry carries traffic: %s", got.CIDR)
	}
}
