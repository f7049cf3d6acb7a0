package conformance

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

func timeExperiments() []experiment {
	return []experiment{
		{"time/creation of an NLB", "nlb", creationTime},
		{"time/servers that are being removed", "nlb", removingServers},
		{"time/region with one zone", "nlb", regionWithOneZone},
		{"time/IPv6 address of a CLB", "slb", ipv6Address},
	}
}

// creationTime compares how long the creation of an NLB takes with how long a job takes.
func creationTime(l *lab) {
	begun := time.Now()
	l.serverGroup(P{"Protocol": "TCP"})
	job := time.Since(begun)
	begun = time.Now()
	lb := l.nlb()
	creation := time.Since(begun)
	begun = time.Now()
	l.do("nlb", "DeleteLoadBalancer", P{"LoadBalancerId": lb})
	for try := 0; try < tries && l.try("nlb", "GetLoadBalancerAttribute", P{"LoadBalancerId": lb}) == "accepted"; try++ {
		l.wait()
	}
	l.see("nlb.durations", fmt.Sprintf("%.0f and %.0f times", creation.Seconds()/job.Seconds(), time.Since(begun).Seconds()/job.Seconds()),
		"20 and 10 times")
}

// removingServers adds a server to a load balancer whose quota a server uses up that is being removed.
func removingServers(l *lab) {
	lb := l.nlb()
	groups := [2]string{l.serverGroup(P{"Protocol": "TCP"}), l.serverGroup(P{"Protocol": "TCP"})}
	for i, group := range groups {
		l.job(l.do("nlb", "CreateListener", nlbListener(lb, group, "TCP", 80+i)))
		l.active(lb)
	}
	l.settings(`{"quotas":{"serversPerNlb":1}}`)
	l.job(l.do("nlb", "AddServersToServerGroup", l.nlbServers(groups[0], 1)))
	l.do("nlb", "RemoveServersFromServerGroup", l.nlbServers(groups[0], 1))
	l.see("nlb.removing-counts", l.try("nlb", "AddServersToServerGroup", l.nlbServers(groups[1], 1)), "QuotaExceeded.QuotaInsufficient")
}

// regionWithOneZone asks for a load balancer in the only zone of a region.
func regionWithOneZone(l *lab) {
	config := cloud.DefaultConfig()
	config.VSwitches = config.VSwitches[:1]
	l.elsewhere(config, func(l *lab) {
		one := P{"AddressType": "Intranet", "VpcId": config.VPCs[0].ID, "ZoneMappings.1.ZoneId": config.VSwitches[0].Zone,
			"ZoneMappings.1.VSwitchId": config.VSwitches[0].ID}
		l.see("nlb.zones-1-in-small-regions", l.try("nlb", "CreateLoadBalancer", one), "accepted")
	})
}

// ipv6Address finds out where the address of an intranet load balancer with IPv6 comes from.
func ipv6Address(l *lab) {
	p := l.intranet()
	p["AddressIPVersion"], p["VpcId"], p["VSwitchId"] = "ipv6", "vpc-six", "vsw-six-a"
	lb := text(l.do("slb", "CreateLoadBalancer", p), "LoadBalancerId")
	address, err := netip.ParseAddr(text(l.do("slb", "DescribeLoadBalancerAttribute", P{"LoadBalancerId": lb}), "Address"))
	ofVSwitch := err == nil && netip.MustParsePrefix(rangeOfSix).Contains(address)
	l.see("network.ipv6-addresses", fmt.Sprintf("in the range of the vSwitch: %t", ofVSwitch), "in the range of the vSwitch: true")
}
