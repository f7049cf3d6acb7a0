package emulator_test

import (
	"testing"

	vpcapi "github.com/aliyun/alibaba-cloud-sdk-go/services/vpc"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
)

// withIPv6 switches IPv6 on in the VPC and in one of its vSwitches.
func withIPv6(change func(*emulator.Config)) *emulator.Config {
	config := cloud.DefaultConfig()
	config.VPCs[0].IPv6CIDR, config.VSwitches[0].IPv6CIDR = "2408:4005:300:ab00::/56", "2408:4005:300:ab01::/64"
	change(config)
	return config
}

// entriesOf lists the entries of the system table that a list with this IP version shows, as "CIDR version type".
func (a *account) entriesOf(version string) []string {
	a.t.Helper()
	r := vpcapi.CreateDescribeRouteEntryListRequest()
	r.RouteTableId, r.IpVersion, r.RouteEntryType = table, version, "Custom"
	var all []string
	for _, e := range testkit.Must(a.vpc.DescribeRouteEntryList(r))(a.t).RouteEntrys.RouteEntry {
		all = append(all, e.DestinationCidrBlock+" "+e.IpVersion)
	}
	return all
}

func (a *account) createRouteOf(cidr, version string) []vpcapi.FailedRouteEntriesItem {
	a.t.Helper()
	r := vpcapi.CreateCreateRouteEntriesRequest()
	r.RouteEntries = &[]vpcapi.CreateRouteEntriesRouteEntries{
		{RouteTableId: table, DstCidrBlock: cidr, NextHop: "i-1", NextHopType: "Instance", IpVersion: version},
	}
	return testkit.Must(a.vpc.CreateRouteEntries(r))(a.t).FailedRouteEntries
}

func TestIPv6Routes(t *testing.T) {
	t.Parallel()
	for name, only := range map[string]bool{"lists show both families": false, "lists show IPv4 unless asked": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newAccount(t, emulator.Options{Config: withIPv6(func(c *emulator.Config) { c.RouteListsIPv4 = only })})
			a.put("i-1", emulator.InstanceSpec{})
			for _, e := range []struct{ cidr, version, code string }{
				{"fd00:10::/64", "6", ""},
				{"10.244.0.0/24", "", ""},
				{"fd00:10:0:1::/64", "4", "InvalidCidrBlock"},
				{"10.244.1.0/24", "6", "InvalidCidrBlock"},
				{"2408:4005:300:ab01:1::/80", "6", "InvalidCidrBlock"}, // inside the vSwitch
				{"::ffff:10.244.2.0/120", "6", "InvalidCidrBlock.Malformed"},
			} {
				failed := a.createRouteOf(e.cidr, e.version)
				if code := firstCode(failed); code != e.code {
					t.Errorf("%s, version %q: %q, want %q", e.cidr, e.version, code, e.code)
				}
			}
			wantEqual(t, "IPv6 entries", a.entriesOf("IPv6"), []string{"::/0 IPv6", "fd00:10::/64 IPv6"})
			all := []string{"::/0 IPv6", "fd00:10::/64 IPv6", "10.244.0.0/24 IPv4"}
			if only {
				all = all[2:]
			}
			wantEqual(t, "entries without an IP version asked for", a.entriesOf(""), all)
			sw := vpcapi.CreateDescribeVSwitchesRequest()
			sw.VSwitchId = "vsw-a"
			wantEqual(t, "range of the vSwitch", testkit.Must(a.vpc.DescribeVSwitches(sw))(t).VSwitches.VSwitch[0].Ipv6CidrBlock,
				"2408:4005:300:ab01::/64")
			get := vpcapi.CreateDescribeVpcAttributeRequest()
			get.VpcId = "vpc-emulator"
			wantEqual(t, "range of the VPC", testkit.Must(a.vpc.DescribeVpcAttribute(get))(t).Ipv6CidrBlock, "2408:4005:300:ab00::/56")
		})
	}
}

func firstCode(failed []vpcapi.FailedRouteEntriesItem) string {
	if len(failed) == 0 {
		return ""
	}
	return failed[0].FailedCode
}

// TestTableOfVPCWithIPv6IsDeleted: the entry for all other IPv6 destinations, which comes with the table, goes with it. One of a user holds
// it.
func TestTableOfVPCWithIPv6IsDeleted(t *testing.T) {
	t.Parallel()
	a := newAccount(t, emulator.Options{Config: withIPv6(func(*emulator.Config) {})})
	a.put("i-1", emulator.InstanceSpec{})
	request := vpcapi.CreateCreateRouteTableRequest()
	request.VpcId = "vpc-emulator"
	table := testkit.Must(a.vpc.CreateRouteTable(request))(t).RouteTableId
	entry := vpcapi.CreateCreateRouteEntryRequest()
	entry.RouteTableId, entry.DestinationCidrBlock, entry.NextHopId, entry.NextHopType = table, "10.244.0.0/24", "i-1", "Instance"
	made := testkit.Must(a.vpc.CreateRouteEntry(entry))(t).RouteEntryId
	deletion := vpcapi.CreateDeleteRouteTableRequest()
	deletion.RouteTableId = table
	_, err := a.vpc.DeleteRouteTable(deletion)
	wantCode(t, err, "IncorrectRouteTableStatus.RouteEntryExist", 400)
	gone := vpcapi.CreateDeleteRouteEntryRequest()
	gone.RouteEntryId = made
	testkit.Must(a.vpc.DeleteRouteEntry(gone))(t)
	testkit.Must(a.vpc.DeleteRouteTable(deletion))(t)
}

func TestIPv6RoutesWithoutIPv6(t *testing.T) {
	t.Parallel()
	a := newAccount(t, emulator.Options{})
	a.put("i-1", emulator.InstanceSpec{})
	wantEqual(t, "code", firstCode(a.createRouteOf("fd00:10::/64", "6")), "InvalidCidrBlock")
}

func TestIPv6Config(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*emulator.Config){
		"size of the VPC's range":     func(c *emulator.Config) { c.VPCs[0].IPv6CIDR = "2408:4005:300:ab00::/48" },
		"IPv4 for IPv6":               func(c *emulator.Config) { c.VPCs[0].IPv6CIDR = "10.0.0.0/8" },
		"size of the vSwitch's range": func(c *emulator.Config) { c.VSwitches[0].IPv6CIDR = "2408:4005:300:ab01::/80" },
		"outside the VPC's range":     func(c *emulator.Config) { c.VSwitches[0].IPv6CIDR = "2408:4005:301:ab01::/64" },
		"VPC without IPv6":            func(c *emulator.Config) { c.VPCs[0].IPv6CIDR = "" },
	} {
		if _, err := emulator.New(emulator.Options{Config: withIPv6(change)}); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
