package emulator_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

// TestNLBRegionWithOneZone: where a region has one zone, a load balancer needs no second one.
func TestNLBRegionWithOneZone(t *testing.T) {
	t.Parallel()
	config := cloud.DefaultConfig()
	config.VSwitches = config.VSwitches[:1]
	a := newAccount(t, emulator.Options{Config: config})
	one := in{"AddressType": "Intranet", "VpcId": "vpc-emulator", "ZoneMappings.1.ZoneId": "cn-hangzhou-a",
		"ZoneMappings.1.VSwitchId": "vsw-a"}
	a.nlbCall("CreateLoadBalancer", one)
	newAccount(t, emulator.Options{}).refused("CreateLoadBalancer", one, "InvalidZones", 400)
}

// TestNLBPackageWithAddresses: a package of bandwidth and elastic addresses go together.
func TestNLBPackageWithAddresses(t *testing.T) {
	t.Parallel()
	a := newAccount(t, emulator.Options{})
	address := func() string {
		return text(t, a.product("vpc", "AllocateEipAddress", in{"InternetChargeType": "PayByTraffic"}), "AllocationId")
	}
	id := a.newNLB(in{
		"AddressType": "Internet", "BandwidthPackageId": "cbwp-1", "ZoneMappings.1.AllocationId": address(),
		"ZoneMappings.2.AllocationId": address(),
	})
	wantEqual(t, "package", text(t, a.nlb(id), "BandwidthPackageId"), "cbwp-1")
}

// TestNLBRemovingServersCount: servers count for the quota of their load balancer until their removal has ended.
func TestNLBRemovingServersCount(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		config := cloud.DefaultConfig()
		config.Quotas.ServersPerNLB = 1
		a := newBubble(t, emulator.Options{Config: config, Settle: time.Second})
		a.put("i-1", emulator.InstanceSpec{VSwitchID: "vsw-a"})
		id := a.newNLB(nil)
		one, two := a.newNLBGroup(nil), a.newNLBGroup(in{"ServerGroupName": "second"})
		time.Sleep(time.Minute)
		for i, group := range []string{one, two} {
			a.newNLBListener(id, group, 80+i, nil)
			time.Sleep(time.Minute)
		}
		server := func(group string) in {
			return in{"ServerGroupId": group, "Servers.1.ServerId": "i-1", "Servers.1.ServerType": "Ecs", "Servers.1.Port": "80"}
		}
		a.nlbCall("AddServersToServerGroup", server(one))
		time.Sleep(time.Minute)
		a.nlbCall("RemoveServersFromServerGroup", server(one))
		a.refused("AddServersToServerGroup", server(two), "QuotaExceeded.QuotaInsufficient", 400)
		time.Sleep(time.Minute)
		a.nlbCall("AddServersToServerGroup", server(two))
	})
}
