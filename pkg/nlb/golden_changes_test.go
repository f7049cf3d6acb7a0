package nlb

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
)

// balancerHas checks something of the load balancer.
func balancerHas(what string, holds func(lb *alicloud.NLB) bool) func(*testing.T, *world) {
	return func(t *testing.T, w *world) {
		t.Helper()
		if lb := w.balancer("web"); !holds(&lb) {
			t.Errorf("%s: %+v", what, lb)
		}
	}
}

func threeZones(c *cloud.Config) {
	c.VSwitches = append(c.VSwitches, cloud.VSwitchConfig{ID: "vsw-c", VPCID: c.VPCs[0].ID, Zone: "cn-hangzhou-c", CIDR: "10.3.0.0/16"})
}

func inZones(n int) func(*testing.T, *world) {
	return balancerHas(fmt.Sprintf("is in %d zones", n), func(lb *alicloud.NLB) bool { return len(lb.Zones) == n })
}

func TestGoldenChangesOfTheLoadBalancer(t *testing.T) {
	t.Parallel()
	runGolden(t, []life{
		{name: "internet to intranet and back", nodes: 1, service: edits(testkube.TCP(80)), changes: []change{
			{writes: create},
			{edit: edits(with(annotation.AddressType, "Intranet")), writes: []string{"UpdateLoadBalancerAddressTypeConfig"},
				check: balancerHas("intranet", func(lb *alicloud.NLB) bool { return lb.AddressType == alicloud.NLBIntranet })},
			{edit: edits(without(annotation.AddressType)), writes: []string{"UpdateLoadBalancerAddressTypeConfig"},
				check: balancerHas("internet", func(lb *alicloud.NLB) bool { return lb.AddressType == alicloud.NLBInternet })},
		}},
		{name: "zone added and removed", nodes: 1, cloud: threeZones, service: edits(testkube.TCP(80)), changes: []change{
			{check: inZones(2)},
			{edit: edits(with(annotation.ZoneMaps, twoZones+", cn-hangzhou-c:vsw-c")), writes: []string{"UpdateLoadBalancerZones"},
				check: inZones(3)},
			{edit: edits(with(annotation.ZoneMaps, "cn-hangzhou-b:vsw-b,cn-hangzhou-c:vsw-c")), writes: []string{"UpdateLoadBalancerZones"},
				check: inZones(2)},
		}},
		{name: "IP version changed: one Warning, the rest applied", nodes: 1, service: edits(testkube.TCP(80)), changes: []change{
			{},
			{edit: edits(with(annotation.IPVersion, "DualStack"), with(annotation.IdleTimeout, "60")), writes: []string{"UpdateListenerAttribute"},
				says: []string{"loadbalancer-ip-version: DualStack cannot be changed"}},
		}},
		{name: "IPv6 internet on, off, and removed", nodes: 1, service: edits(testkube.TCP(80), with(annotation.IPVersion, "DualStack")),
			changes: []change{
				{writes: create},
				{edit: edits(with(annotation.IPv6AddressType, "internet")), writes: []string{"EnableLoadBalancerIpv6Internet"}},
				{edit: edits(with(annotation.IPv6AddressType, "intranet")), writes: []string{"DisableLoadBalancerIpv6Internet"}},
				{edit: edits(with(annotation.IPv6AddressType, "internet")), writes: []string{"EnableLoadBalancerIpv6Internet"}},
				{edit: edits(without(annotation.IPv6AddressType)), writes: []string{"DisableLoadBalancerIpv6Internet"}},
			}},
		{name: "IPv6 internet in the creation", nodes: 1,
			service: edits(testkube.TCP(80), with(annotation.IPVersion, "DualStack"), with(annotation.IPv6AddressType, "internet")),
			changes: []change{
				{check: balancerHas("IPv6 internet", func(lb *alicloud.NLB) bool { return lb.IPv6AddressType == alicloud.NLBInternet })},
			}},
		{name: "bandwidth package swapped, emptied, on intranet", nodes: 1,
			service: edits(testkube.TCP(80), with(annotation.BandwidthPackageID, "cbwp-1")), changes: []change{
				{writes: create, check: hasPackage("cbwp-1")},
				{edit: edits(with(annotation.BandwidthPackageID, "cbwp-2")),
					writes: []string{"DetachCommonBandwidthPackageFromLoadBalancer", "AttachCommonBandwidthPackageToLoadBalancer"},
					check:  hasPackage("cbwp-2")},
				{edit: edits(with(annotation.BandwidthPackageID, "")), writes: []string{"DetachCommonBandwidthPackageFromLoadBalancer"},
					check: hasPackage("")},
				{edit: edits(with(annotation.BandwidthPackageID, "cbwp-1")), writes: []string{"AttachCommonBandwidthPackageToLoadBalancer"}},
				{edit: edits(with(annotation.AddressType, "intranet")),
					says: []string{"loadbalancer-bandwidth-package-id has no effect with loadbalancer-address-type: intranet"}, check: hasPackage("")},
			}},
		{name: "cross-zone off in the creation, key removed, off", nodes: 1,
			service: edits(testkube.TCP(80), with(annotation.CrossZoneEnabled, "off")), changes: []change{
				{check: balancerHas("off", func(lb *alicloud.NLB) bool { return !lb.CrossZone })},
				{edit: edits(without(annotation.CrossZoneEnabled)), writes: []string{"UpdateLoadBalancerAttribute"},
					check: balancerHas("on", func(lb *alicloud.NLB) bool { return lb.CrossZone })},
				{edit: edits(with(annotation.CrossZoneEnabled, "off")), writes: []string{"UpdateLoadBalancerAttribute"}},
			}},
		{name: "tags changed, a human's tag stays", nodes: 1, service: edits(testkube.TCP(80), with(annotation.AdditionalTags, "a=1,b=2")),
			changes: []change{
				{writes: create},
				{do: func(w *world) {
					testkit.Check(w.t,
						w.account.Client.TagNLB(w.t.Context(), alicloud.NLBTagLoadBalancer, []string{w.balancer("web").ID},
							[]alicloud.Tag{{Key: "human", Value: "1"}}))
					testkit.Check(w.t, w.Invalidate(w.t.Context(), w.get("web"), "drift"))
				}, edit: edits(with(annotation.AdditionalTags, "a=3")), writes: []string{"TagResources", "UntagResources"},
					check: balancerHas("tags", func(lb *alicloud.NLB) bool {
						a, _ := lb.Tag("a")
						_, b := lb.Tag("b")
						_, human := lb.Tag("human")
						return a == "3" && !b && human
					})},
			}},
		{name: "name removed", nodes: 1, service: edits(testkube.TCP(80), with(annotation.Name, "shop")), changes: []change{
			{},
			{edit: edits(without(annotation.Name)), writes: []string{"UpdateLoadBalancerAttribute"},
				check: balancerHas("name", func(lb *alicloud.NLB) bool { return lb.Name == "a0f5e8a1cweb" })},
		}},
		{name: "delete protection: a human's change stays while no annotation asks", nodes: 1, service: edits(testkube.TCP(80)), changes: []change{
			{check: balancerHas("on", func(lb *alicloud.NLB) bool { return lb.DeletionProtection })},
			{do: func(w *world) {
				testkit.Check(w.t, w.account.Client.ProtectNLB(w.t.Context(), w.balancer("web").ID, alicloud.NLBProtection{Deletion: new(false)}))
				testkit.Check(w.t, w.Invalidate(w.t.Context(), w.get("web"), "drift"))
			}, writes: none},
			{edit: edits(with(annotation.DeleteProtection, "on")), writes: []string{"UpdateLoadBalancerProtection"}},
			{edit: edits(with(annotation.DeleteProtection, "off"), with(annotation.ModificationProtection, "NonProtection")),
				writes: []string{"UpdateLoadBalancerProtection"}},
		}},
	})
}

// TestGoldenOldPrefix: annotations of the old prefix count, too, and the new one wins.
func TestGoldenOldPrefix(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.addNodes("n1")
		svc := testkube.Service("web", testkube.Class(Class), testkube.TCP(80))
		for suffix, value := range map[annotation.Suffix]string{annotation.ZoneMaps: twoZones, annotation.IdleTimeout: "60",
			annotation.Name: "old-name", annotation.Scheduler: "rr"} {
			testkube.Annotation(annotation.Prefixes[1]+string(suffix), value)(svc)
		}
		with(annotation.Name, "new-name")(svc)
		w.put(svc)
		w.converge("web")
		lb, l, g := w.balancer("web"), w.listener(w.balancer("web").ID, 0), w.groups("web")[0]
		if lb.Name != "new-name" || *l.IdleTimeout != 60 || !strings.EqualFold(*g.Scheduler, "rr") {
			t.Errorf("name %s, idle timeout %d, scheduler %s", lb.Name, *l.IdleTimeout, *g.Scheduler)
		}
		w.quiet("web")
	})
}

// TestGoldenSecurityGroupsOfTheOtherType: they cannot be mixed, so that the old ones go first.
func TestGoldenSecurityGroupsOfTheOtherType(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		basic, advanced := w.securityGroup("basic", ""), w.securityGroup("advanced", alicloud.SecurityGroupEnterprise)
		w.serve(1, testkube.TCP(80), with(annotation.SecurityGroupIDs, basic))
		w.change("web", with(annotation.SecurityGroupIDs, advanced))
		w.converge("web")
		if got := w.balancer("web").SecurityGroups; !slices.Equal(got, []string{advanced}) {
			t.Errorf("security groups %v", got)
		}
		w.quiet("web")
		w.change("web", with(annotation.SecurityGroupIDs, ""))
		w.converge("web")
		if got := w.balancer("web").SecurityGroups; len(got) > 0 {
			t.Errorf("security groups %v", got)
		}
		w.quiet("web")
		w.change("web", with(annotation.SecurityGroupIDs, basic), func(svc *corev1.Service) {
			svc.Spec.LoadBalancerSourceRanges = []string{"192.0.2.0/24"}
		})
		_ = w.try("web")
		mustReport(t, w.newEvents(), "basic and advanced security groups cannot be mixed")
	})
}

// TestGoldenManySourceRanges: 150 ranges take two calls; the label names the security group while there is one, which outlives a
// dependency for a moment.
func TestGoldenManySourceRanges(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		ranges := func(n int) func(*corev1.Service) {
			return func(svc *corev1.Service) {
				svc.Spec.LoadBalancerSourceRanges = nil
				for i := range n {
					svc.Spec.LoadBalancerSourceRanges = append(svc.Spec.LoadBalancerSourceRanges, fmt.Sprintf("192.0.%d.0/24", i))
				}
			}
		}
		w.serve(1, testkube.TCP(80), ranges(150))
		calls := writes(w.calls())
		if n := len(slices.DeleteFunc(calls, func(c string) bool { return c != "AuthorizeSecurityGroup" })); n != 2 {
			t.Errorf("%d calls for 151 rules", n)
		}
		if id := w.get("web").Labels[driver.LabelSecurityGroupID]; id == "" || !slices.Contains(w.balancer("web").SecurityGroups, id) {
			t.Errorf("label %q, security groups %v", id, w.balancer("web").SecurityGroups)
		}
		w.quiet("web")
		w.account.Fault(`{"action":"DeleteSecurityGroup","times":1,"code":"DependencyViolation","status":403}`)
		w.change("web", ranges(0))
		w.converge("web")
		if id, ok := w.get("web").Labels[driver.LabelSecurityGroupID]; ok {
			t.Errorf("label %q", id)
		}
		if left := testkit.Must(w.account.Client.DescribeSecurityGroups(t.Context(), *w.owner("web")))(t); len(left) > 0 {
			t.Errorf("security groups %v", left)
		}
		w.quiet("web")
	})
}

// TestDisablePublicChangesNoAddressType: where public load balancers are switched off, one in the intranet does not come to face the
// internet: not by an annotation, not by the removal of one, and not by IPv6.
func TestDisablePublicChangesNoAddressType(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(*corev1.Service){
		"internet": with(annotation.AddressType, "internet"), "removed": without(annotation.AddressType),
		"IPv6": with(annotation.IPv6AddressType, "internet"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, w *world) {
				w.config.DisablePublicSLB = true
				w.restart()
				w.serve(1, testkube.TCP(80), with(annotation.AddressType, "intranet"), with(annotation.IPVersion, "DualStack"))
				w.newEvents()
				w.calls()
				w.addNodes("n2")
				w.change("web", edit)
				w.converge("web")
				if got, want := writes(w.calls()), []string{"AddServersToServerGroup"}; !slices.Equal(got, want) {
					t.Errorf("writes %v, want %v", got, want)
				}
				mustReport(t, w.newEvents(), "disablePublicSLB in the cloud-config switches public load balancers off")
			})
		})
	}
}

// TestRangesGoWithTheLoadBalancer: a Service with source ranges moves from its own load balancer to an existing one, whose security groups
// are its owner's. The security group goes with the load balancer.
func TestRangesGoWithTheLoadBalancer(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		a := w.existing("first")
		w.serve(1, testkube.TCP(80), func(svc *corev1.Service) { svc.Spec.LoadBalancerSourceRanges = []string{"192.0.2.0/24"} })
		w.change("web", with(annotation.LoadBalancerID, a), with(annotation.ForceOverrideListeners, "true"))
		w.converge("web")
		w.later(30 * settle)
		w.converge("web")
		if left := len(w.balancers("web")) + len(w.securityGroups("web")); left > 0 || w.get("web").Labels[driver.LabelSecurityGroupID] != "" {
			t.Errorf("%d things are left, labels %v", left, w.get("web").Labels)
		}
		w.quiet("web")
	})
}
