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
		want string
		edit func(*Config)
	}{
		{`region: ""`, func(c *Config) { c.Region = "" }},
		{`region: "Beijing", accepted: the ID of a region such as cn-hangzhou`, func(c *Config) { c.Region = "Beijing" }},
		{`accountId: "a/b"`, func(c *Config) { c.AccountID = "a/b" }},
		{`preset: "some", accepted: published, observed`, func(c *Config) { c.Preset = "some" }},
		{`quotas.nlbs: "-1", accepted: a number from 0`, func(c *Config) { c.Quotas.NLBs = -1 }},
		{`vpcs[0].cidr: "10/8", accepted: an IPv4 block`, func(c *Config) { c.VPCs[0].CIDR = "10/8" }},
		{`vpcs[0].cidr: "10.0.0.1/8"`, func(c *Config) { c.VPCs[0].CIDR = "10.0.0.1/8" }},
		{`vpcs[1].id: "vpc-emulator", accepted: an ID that no other of vpcs has`, func(c *Config) { c.VPCs = append(c.VPCs, c.VPCs[0]) }},
		{`vpcs[0].id: "", accepted: an ID`, func(c *Config) { c.VPCs[0].ID = "" }},
		{`routeTables: VPC vpc-2 has none`, func(c *Config) { c.VPCs = append(c.VPCs, VPCConfig{ID: "vpc-2", CIDR: "10.0.0.0/8"}) }},
		{`routeTables[1].vpcId: "none", accepted: the ID of one of vpcs`, func(c *Config) {
			c.RouteTables = append(c.RouteTables, RouteTableConfig{ID: "t", VPCID: "none"})
		}},
		{`routeTables[1].id: "vtb-emulator"`, func(c *Config) { c.RouteTables = append(c.RouteTables, c.RouteTables[0]) }},
		{"overlaps", func(c *Config) { c.VSwitches[1].CIDR = "10.1.128.0/24" }},
		{`vSwitches[0].vpcId: "none"`, func(c *Config) { c.VSwitches[0].VPCID = "none" }},
		{`vSwitches[1].id: "vsw-a"`, func(c *Config) { c.VSwitches[1].ID = "vsw-a" }},
		{`vSwitches[0].cidr: "192.168.0.0/24", accepted: a block inside 10.0.0.0/8 of its VPC`, func(c *Config) {
			c.VSwitches[0].CIDR = "192.168.0.0/24"
		}},
		{`vSwitches[0].zoneId: "cn-beijing-a"`, func(c *Config) { c.VSwitches[0].Zone = "cn-beijing-a" }},
		{`vSwitches[0].zoneId: ""`, func(c *Config) { c.VSwitches[0].Zone = "" }},
		{`vSwitches[0].routeTableId: "vtb-x"`, func(c *Config) { c.VSwitches[0].RouteTableID = "vtb-x" }},
		{"instances[1]: place instance b: address 10.1.0.1", func(c *Config) {
			c.Instances = []InstanceConfig{{ID: "a", PrivateIP: "10.1.0.1"}, {ID: "b", PrivateIP: "10.1.0.1"}}
		}},
		{`instances[1].id: "a"`, func(c *Config) { c.Instances = []InstanceConfig{{ID: "a"}, {ID: "a"}} }},
		{`instances[0].status: "running", accepted: Pending, Starting, Running, Stopping, Stopped`, func(c *Config) {
			c.Instances = []InstanceConfig{{ID: "a", Status: "running"}}
		}},
		{`instances[0].httpTokens: "on"`, func(c *Config) { c.Instances = []InstanceConfig{{ID: "a", HTTPTokens: "on"}} }},
		{`instances[0].httpEndpoint: "on"`, func(c *Config) { c.Instances = []InstanceConfig{{ID: "a", HTTPEndpoint: "on"}} }},
		{"role none", func(c *Config) { c.Instances = []InstanceConfig{{ID: "a", RAMRole: "none"}} }},
		{"vSwitch none does not exist", func(c *Config) { c.Instances = []InstanceConfig{{ID: "a", VSwitchID: "none"}} }},
		{`accessKeys[1].id: "emulator"`, func(c *Config) { c.AccessKeys = append(c.AccessKeys, c.AccessKeys[0]) }},
		{`accessKeys[0].secret: ""`, func(c *Config) { c.AccessKeys[0].Secret = "" }},
		{`accessKeys[0].permissions[1]: "slb.*", accepted: *, or product and action`, func(c *Config) {
			c.AccessKeys[0].Permissions = []string{"*", "slb.*"}
		}},
		{`roles[0].permissions[0]: "slb:["`, func(c *Config) { c.Roles[0].Permissions = []string{"slb:["} }},
		{`roles[0].oidcProviders[0]: "x", accepted: the name of one of oidcProviders`, func(c *Config) {
			c.Roles[0].OIDCProviders = []string{"x"}
		}},
		{`roles[0].maxSessionDuration: "60", accepted: 900 to 43200 seconds`, func(c *Config) { c.Roles[0].MaxSession = 60 }},
		{`oidcProviders[0].clientIds`, func(c *Config) { c.OIDCProviders[0].ClientIDs = nil }},
		{"certificates[0]", func(c *Config) { c.Certificates = []CertificateConfig{{ID: "c", Certificate: "x"}} }},
		{`certificates[0].certificate: ""`, func(c *Config) { c.Certificates = []CertificateConfig{{ID: "c", PrivateKey: "x"}} }},
		{`certificates[0].id: ""`, func(c *Config) { c.Certificates = []CertificateConfig{{}} }},
		{`acls[0].entries[0]: "office", accepted: a block of ipv4 addresses`, func(c *Config) {
			c.ACLs = []ACLConfig{{ID: "a", Entries: []string{"office"}}}
		}},
		{`acls[0].entries[0]: "10.0.0.0/8", accepted: a block of ipv6`, func(c *Config) {
			c.ACLs = []ACLConfig{{ID: "a", IPVersion: "ipv6", Entries: []string{"10.0.0.0/8"}}}
		}},
		{`acls[0].ipVersion: "4", accepted: ipv4, ipv6`, func(c *Config) { c.ACLs = []ACLConfig{{ID: "a", IPVersion: "4"}} }},
		{`statuses.signatureDoesNotMatch: "99", accepted: 400 to 599`, func(c *Config) { c.Statuses.SignatureMismatch = 99 }},
		{`severalAcls "all"`, func(c *Config) { c.SeveralACLs = "all" }},
	}
	for _, test := range tests {
		t.Run(test.want, func(t *testing.T) {
			t.Parallel()
			c := DefaultConfig()
			test.edit(c)
			if _, err := New(c, 0); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error = %v, want one that names %s", err, test.want)
			}
		})
	}
}

// TestConfigTypes: a value of a wrong type is named with its field, and no secret appears.
func TestConfigTypes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"quotas: {nlbs: many}":                              "quotas.nlbs: string, accepted: a number (int)",
		"vpcs: vpc-1":                                       "vpcs: string, accepted: a list",
		"vpcs: [{id: [x]}]":                                 "vpcs.id: array, accepted: a string",
		"routeListsIPv4: maybe":                             "routeListsIPv4: string, accepted: true or false",
		"replicaLag: 5":                                     `replicaLag: 5, accepted: a duration such as "30s"`,
		"tagSearchLag: soon":                                `tagSearchLag: "soon", accepted: a duration`,
		"statuses: [1]":                                     "statuses: array, accepted: an object",
		"certificates: [{id: c, expires: tomorrow}]":        `"tomorrow", accepted: a time such as 2027-01-02T15:04:05Z`,
		"nmae: x":                                           `unknown field "nmae"`,
		"region: a\nregion: b":                              `"region" already set`,
		"accessKeys: [{id: x, secret: [hunter2]}]":          "accessKeys.secret: array, accepted: a string",
		"accessKeys: [{id: x, secert: hunter2}]":            `unknown field "secert"`,
		"certificates: [{id: c, privateKey: {a: hunter2}}]": "certificates.privateKey: object, accepted: a string",
	} {
		_, err := ReadConfig([]byte(text))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
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
		table.AddEntry(&RouteEntry{Object: Object{ID: cidr, Seq: int64(table.Entries.Len())}, CIDR: netip.MustParsePrefix(cidr),
			Phase: Steady(Available)})
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
