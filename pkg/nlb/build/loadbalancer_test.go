package build_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/model"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	marks "github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/sharing"
)

// TestNewLoadBalancer shows what a load balancer that is created has otherwise than without annotations.
func TestNewLoadBalancer(t *testing.T) {
	t.Parallel()
	const zones = "z-a:vsw-a,z-b:vsw-b:10.0.1.9:eip-b"
	without, _ := newFixture(80).build()
	usual := fields(without.LoadBalancer)
	differs := func(m *model.Model) []string {
		return slices.DeleteFunc(fields(m.LoadBalancer), func(f string) bool { return slices.Contains(usual, f) })
	}
	checkRows(t, differs, []row{
		{"plain", plain, nil, nil},
		{"name", set("name", "web-1"), []string{"Name=web-1"}, nil},
		{"not facing the internet", set("address-type", "intranet"), []string{"AddressType=Intranet"}, nil},
		{"both families", set("ip-version", "dualstack"), []string{"AddressIPVersion=DualStack"}, nil},
		{"zones", set("zone-maps", zones),
			[]string{"Zones=[map[VSwitchID:vsw-a ZoneID:z-a] map[AllocationID:eip-b PrivateIPv4:10.0.1.9 VSwitchID:vsw-b ZoneID:z-b]]"}, nil},
		{"elastic IP addresses without the internet", set("zone-maps", zones, "address-type", "intranet"),
			[]string{"AddressType=Intranet", "Zones=[map[VSwitchID:vsw-a ZoneID:z-a] map[PrivateIPv4:10.0.1.9 VSwitchID:vsw-b ZoneID:z-b]]"},
			[]string{
				"AnnotationNoEffect: " + key + "zone-maps: elastic IP addresses have no effect with " + key + "address-type: intranet",
			}},
		{"a zone twice", set("zone-maps", "z-a:vsw-a,z-a:vsw-b"), nil, []string{
			"InvalidAnnotation: " + key + "zone-maps: one entry for each zone, at most 10, and each address an IPv4 address",
		}},
		{"resource group", set("resource-group-id", "rg-1"), []string{"ResourceGroupID=rg-1"}, nil},
		{"security groups", set("security-group-ids", "sg-1,sg-2"), []string{"SecurityGroups=[sg-1 sg-2]"}, nil},
		{"bandwidth package", set("bandwidth-package-id", "cbwp-1"), []string{"BandwidthPackageID=cbwp-1"}, nil},
		{"bandwidth package without the internet", set("bandwidth-package-id", "cbwp-1", "address-type", "intranet"),
			[]string{"AddressType=Intranet"}, []string{
				"AnnotationNoEffect: " + key + "bandwidth-package-id has no effect with " + key + "address-type: intranet",
			}},
		{"no protection", set("delete-protection", "off", "modification-protection", "NonProtection"),
			[]string{"ModificationProtection=NonProtection"}, nil},
		{"tags", set("additional-resource-tags", "team=a,cost-center=b=c"), []string{
			"Tags=[map[Key:kubernetes.do.not.delete Value:a0f5e8a1cweb] map[Key:ack.aliyun.com Value:c1] map[Key:team Value:a] " +
				"map[Key:cost-center Value:b=c]]",
		}, nil},
	})
	if want := []string{
		"AddressIPVersion=ipv4", "AddressType=Internet", "CrossZone=true", "DeletionProtection=true", "ModificationProtection=ConsoleProtection",
		"ModificationProtectionReason=managed.by.ack", "Name=a0f5e8a1cweb", "ResourceGroupID=rg-config",
		"Tags=[map[Key:kubernetes.do.not.delete Value:a0f5e8a1cweb] map[Key:ack.aliyun.com Value:c1]]", "VPCID=vpc-1",
	}; !slices.Equal(usual, want) {
		t.Errorf("without annotations: %q, want %q", usual, want)
	}
}

// TestCreationWaits: an annotation that decides what cannot change later, and is not accepted, keeps the load balancer from being created.
func TestCreationWaits(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(*fixture)
		waits  bool
	}{
		"plain":                      {plain, false},
		"zones":                      {set("zone-maps", "z-a"), true},
		"address type":               {set("address-type", "public"), true},
		"a setting that can change":  {set("cross-zone-enabled", "yes"), false},
		"source ranges":              {ranges("10.0.0.0/8"), false},
		"source ranges that are bad": {ranges("10.0.0.0/33"), true},
	} {
		f := newFixture(80)
		test.change(f)
		if built, _ := f.build(); built.HoldCreation != test.waits {
			t.Errorf("%s: the creation waits: %v, want %v", name, built.HoldCreation, test.waits)
		}
	}
}

// TestChangesOfTheLoadBalancer shows what has to be of a load balancer that is there. What no annotation names stays as it is.
func TestChangesOfTheLoadBalancer(t *testing.T) {
	t.Parallel()
	wants := func(m *model.Model) []string { return fields(m.Want, "Ownership") }
	in := func(groups ...string) func(*fixture) {
		return existing(func(m *model.Model) { m.LoadBalancer.SecurityGroups = groups })
	}
	const inUse = "[map[VSwitchID:vsw-a ZoneID:z-a] map[VSwitchID:vsw-b ZoneID:z-b]"
	immutable := func(what string) []string { return []string{"ImmutableAttribute: " + key + what} }
	checkRows(t, wants, []row{
		{"plain", existing(), nil, nil},
		{"name", all(existing(), set("name", "web-1")), []string{"Name=web-1"}, nil},
		{"no name any more", all(existing(), removed("name")), []string{"Name=a0f5e8a1cweb"}, nil},
		{"cross-zone", all(existing(), set("cross-zone-enabled", "off")), []string{"CrossZone=false"}, nil},
		{"protections", all(existing(), set("delete-protection", "off", "modification-protection", "NonProtection")),
			[]string{"DeleteProtection=false", "Modification=NonProtection"}, nil},
		{"tags", all(existing(), set("additional-resource-tags", "team=a"), func(f *fixture) { f.removeTags = []string{"old"} }),
			[]string{"RemoveTags=[old]", "Tags=[map[Key:team Value:a]]"}, nil},

		{"address type", all(existing(), set("address-type", "intranet")), []string{"AddressType=Intranet"}, nil},
		{"no address type any more", all(existing(), removed("address-type")), []string{"AddressType=Internet"}, nil},
		{"the internet, switched off", all(existing(func(m *model.Model) { m.LoadBalancer.AddressType = alicloud.NLBIntranet }),
			set("address-type", "internet"), noPublic), nil, []string{
			"FeatureNotSupported: " + key +
				"address-type: internet has no effect: disablePublicSLB in the cloud-config switches public load balancers off",
		}},
		{"the internet, switched off, which it faces already", all(existing(), set("address-type", "internet"), noPublic),
			[]string{"AddressType=Internet"}, nil},
		{"address type of IPv6", all(existing(dual), set("ip-version", "DualStack", "ipv6-address-type", "internet")),
			[]string{"IPv6AddressType=Internet"}, nil},
		{"address type of IPv6, switched off", all(existing(dual), set("ip-version", "DualStack", "ipv6-address-type", "internet"), noPublic),
			nil, []string{
				"FeatureNotSupported: " + key +
					"ipv6-address-type: internet has no effect: disablePublicSLB in the cloud-config switches public load balancers off",
			}},
		{"address type of IPv6 without IPv6", all(existing(), set("ipv6-address-type", "internet")), nil, []string{
			"AnnotationNoEffect: " + key + "ipv6-address-type has no effect without " + key + "ip-version: DualStack",
		}},

		{"bandwidth package", all(existing(), set("bandwidth-package-id", "cbwp-1")), []string{"BandwidthPackage=cbwp-1"}, nil},
		{"no bandwidth package", all(existing(), set("bandwidth-package-id", "")), []string{"BandwidthPackage="}, nil},

		{"joins security groups", all(in("sg-1"), set("security-group-ids", "sg-1,sg-2")), []string{"JoinGroups=[sg-2]"}, nil},
		{"leaves those that are not named", all(in("sg-1", "sg-2"), set("security-group-ids", "sg-1")), []string{"JoinGroups=[]",
			"LeaveGroups=[sg-2]"}, nil},
		{"leaves all", all(in("sg-1"), set("security-group-ids", "")), []string{"LeaveGroups=[sg-1]"}, nil},
		{"leaves those that it joined for the annotation", all(in("sg-1", "sg-2"), func(f *fixture) { f.leaveGroups = []string{"sg-2"} }),
			[]string{"LeaveGroups=[sg-2]"}, nil},
		{"stays where it is while the annotation is not accepted", all(in("sg-1"), set("security-group-ids", "group-1"),
			func(f *fixture) { f.leaveGroups = []string{"sg-1"} }), nil, []string{
			`InvalidAnnotation: ` + key +
				`security-group-ids: "group-1" is not accepted; accepted: a comma-separated list without duplicates, for example sg-1`,
		}},
		{"stays in the one of its source ranges", all(in("sg-1"), existing(func(m *model.Model) {
			m.Access = &model.Access{SecurityGroup: alicloud.SecurityGroup{ID: "sg-1"}}
		}), set("security-group-ids", "")), nil, nil},

		{"zones as they are", all(existing(), set("zone-maps", "z-b:vsw-b,z-a:vsw-a")), nil, nil},
		{"another zone", all(existing(), set("zone-maps", "z-a:vsw-a,z-b:vsw-b,z-c:vsw-c::eip-c")), []string{"Zones=" + inUse +
			" map[AllocationID:eip-c VSwitchID:vsw-c ZoneID:z-c]]"}, nil},
		{"a zone for another one", all(existing(), set("zone-maps", "z-a:vsw-a,z-c:vsw-c")),
			[]string{"Zones=[map[VSwitchID:vsw-a ZoneID:z-a] map[VSwitchID:vsw-c ZoneID:z-c]]"}, nil},
		{"too few zones", all(existing(), set("zone-maps", "z-a:vsw-a")), nil, immutable("zone-maps: a load balancer keeps at least 2 zones")},
		{"another vSwitch of a zone", all(existing(), set("zone-maps", "z-a:vsw-9,z-b:vsw-b")), nil,
			immutable("zone-maps: vSwitch, address and elastic IP address of an existing zone cannot change (z-a); re-create the Service for it")},
		{"another address in a zone", all(existing(), set("zone-maps", "z-a:vsw-a:10.0.0.9,z-b:vsw-b")), nil,
			immutable("zone-maps: vSwitch, address and elastic IP address of an existing zone cannot change (z-a); re-create the Service for it")},
		{"another elastic IP address in a zone", all(existing(), set("zone-maps", "z-a:vsw-a::eip-9,z-b:vsw-b")), nil,
			immutable("zone-maps: vSwitch, address and elastic IP address of an existing zone cannot change (z-a); re-create the Service for it")},
		{"an elastic IP address for when it faces the internet",
			all(existing(func(m *model.Model) { m.LoadBalancer.AddressType = alicloud.NLBIntranet }),
				set("zone-maps", "z-a:vsw-a::eip-9,z-b:vsw-b")), nil, nil},

		{"another IP version", all(existing(), set("ip-version", "DualStack")), nil,
			immutable("ip-version: DualStack cannot be changed, the NLB has ipv4; re-create the Service for it")},
		{"another resource group", all(existing(), set("resource-group-id", "rg-9")), nil,
			immutable("resource-group-id: rg-9 cannot be changed, the NLB is in rg-config")},
	})
}

func noPublic(f *fixture) { f.config.DisablePublicSLB = true }

func dual(m *model.Model) { m.LoadBalancer.AddressIPVersion = alicloud.NLBDualStack }

// TestOwnership: the tags of the owner are put back on a load balancer that was created for the Service, and never on another one.
func TestOwnership(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(*fixture)
		tags   int
	}{
		"new": {plain, 0}, "created": {existing(), 2}, "of somebody else": {reused(), 0}, "of somebody else, managed": {overriding(), 0},
	} {
		f := newFixture(80)
		test.change(f)
		if built, _ := f.build(); len(built.Want.Ownership) != test.tags {
			t.Errorf("%s: tags of the owner %v, want %d", name, built.Want.Ownership, test.tags)
		}
	}
}

// TestExistingLoadBalancers: of a load balancer that a Service names by id, it changes tags only, unless it manages the listeners.
func TestExistingLoadBalancers(t *testing.T) {
	t.Parallel()
	leftAlone := `ListenersLeftAlone: the Service does not manage the listeners of an existing NLB; to manage them, set ` + key +
		`force-override-listeners: "true"`
	state := func(m *model.Model) []string {
		return append(fields(m.Want), fields(struct{ Reused, Override, HoldListeners, HoldCreation bool }{m.Reused, m.Override, m.HoldListeners,
			m.HoldCreation})...)
	}
	changes := set("name", "web-1", "delete-protection", "off", "additional-resource-tags", "team=a")
	checkRows(t, state, []row{
		{"listeners left alone", all(reused(), changes), []string{"Tags=[map[Key:team Value:a]]", "Reused=true"}, []string{leftAlone}},
		{"listeners managed", all(overriding(), changes), []string{"Name=web-1", "Tags=[map[Key:team Value:a]]", "Override=true", "Reused=true"},
			nil},
		{"nobody knows whether", all(reused(), set("force-override-listeners", "maybe")), []string{"HoldListeners=true", "Reused=true"}, []string{
			`InvalidAnnotation: ` + key + `force-override-listeners: "maybe" is not accepted; accepted: true, false`, leftAlone,
		}},
		{"in another VPC", overriding(func(m *model.Model) { m.LoadBalancer.VPCID = "vpc-9" }), []string{"Override=true", "Reused=true"},
			[]string{
				"AnnotationNoEffect: " + key +
					"id: the NLB is in vpc-9, where nodes and pods of vpc-1 are backend servers by their addresses only; use " + key +
					"server-group-type: Ip",
			}},
		{"source ranges", all(overriding(), ranges("10.0.0.0/8")), []string{"Override=true", "Reused=true"}, []string{
			"AnnotationNoEffect: loadBalancerSourceRanges have no effect on an existing NLB: its security groups are its owner's",
		}},
	})
}

// TestGroupsOfOthers: a port of a Service on somebody else's load balancer may use somebody else's server group.
func TestGroupsOfOthers(t *testing.T) {
	t.Parallel()
	group := func(changes ...func(*model.Group)) func(*model.Model) {
		return func(m *model.Model) {
			g := model.Group{NLBGroup: alicloud.NLBGroup{ID: "sgp-9", Name: "shop", Type: alicloud.NLBInstanceGroup, VPCID: "vpc-1"}, Foreign: true}
			for _, change := range changes {
				change(&g)
			}
			m.Groups = append(m.Groups, g)
		}
	}
	lines := func(m *model.Model) []string { return slices.Concat(listenerLines(m), serverLines(m)) }
	joins := func(there ...func(*model.Model)) func(*fixture) {
		return all(overriding(there...), set("vgroup-port", "sgp-9:80"))
	}
	refused := func(why string) []string {
		return []string{"SkipSyncBackends: " + key + "vgroup-port: port 80 is not served: server group sgp-9 " + why}
	}
	const none = "does not exist in VPC vpc-1, or may not be used, because a cloud controller manager made it or it is that of the API server"
	joined, own := []string{"TCP 80 -> sgp-9", "Ecs i-a:30080 weight 100", "Ecs i-b:30080 weight 100"}, []string{"TCP 80 -> 30080.TCP",
		"Ecs i-a:30080 weight 100", "Ecs i-b:30080 weight 100"}
	stays := []string{"TCP 80 -> 30080.TCP blocked: SkipSyncBackends"}
	checkRows(t, lines, []row{
		{"joined", joins(group()), joined, nil},
		{"with a share of the weight", all(joins(group()), set("weight", "60")), []string{"TCP 80 -> sgp-9", "Ecs i-a:30080 weight 30",
			"Ecs i-b:30080 weight 30"}, nil},
		{"a share of the weight, of a port that joins none",
			all(joins(group()), set("vgroup-port", "sgp-9:81", "weight", "60"), port(81, corev1.ProtocolTCP)), []string{
				"TCP 80 -> 30080.TCP", "TCP 81 -> sgp-9", "Ecs i-a:30080 weight 30", "Ecs i-b:30080 weight 30", "Ecs i-a:30081 weight 30",
				"Ecs i-b:30081 weight 30",
			}, nil},
		{"another port's", all(joins(group()), set("vgroup-port", "sgp-9:81")), own, []string{
			"AnnotationNoEffect: " + key + "vgroup-port: sgp-9:81 has no effect, because the Service has no port 81",
		}},
		{"two for a port", all(joins(group()), set("vgroup-port", "sgp-9:80,sgp-8:80")), stays, []string{"InvalidAnnotation: " + key +
			"vgroup-port: port 80 is specified twice"}},
		{"not accepted", all(joins(group()), set("vgroup-port", "shop:80")), stays, []string{
			`InvalidAnnotation: ` + key +
				`vgroup-port: "shop:80" is not accepted; accepted: a comma-separated list without duplicates, for example sgp-1:80`,
		}},
		{"gone", joins(), stays, refused(none)},
		{"one that a manager made", joins(group(func(g *model.Group) { g.Name = "k8s.30080.TCP.shop.default.c1" })), stays,
			refused(none)},
		{"one with an owner's tag", joins(group(func(g *model.Group) { g.Tags = []alicloud.Tag{{Key: marks.TagOwner, Value: "a1"}} })), stays,
			refused(none)},
		{"of another VPC", joins(group(func(g *model.Group) { g.VPCID = "vpc-9" })), stays, refused(none)},
		{"of addresses", joins(group(func(g *model.Group) { g.Type = alicloud.NLBIPGroup })), stays, refused("is of the type Ip")},
		{"on a load balancer that was created for the Service", all(existing(group()), set("vgroup-port", "sgp-9:80")), own, []string{
			"AnnotationNoEffect: " + key + "vgroup-port has no effect without " + key + "id",
		}},
	})
}

// ranges are source ranges.
func ranges(blocks ...string) func(*fixture) {
	return func(f *fixture) { f.svc.Spec.LoadBalancerSourceRanges = blocks }
}

func TestSourceRanges(t *testing.T) {
	t.Parallel()
	rules := func(m *model.Model) []string {
		if m.Access == nil {
			return nil
		}
		lines := []string{line(m.Access.Name, m.Access.Description, m.Access.Type, m.Access.VPCID)}
		for _, r := range m.Access.Rules {
			verb := "accept"
			if r.Drop {
				verb = "drop"
			}
			lines = append(lines, line(verb, r.CIDR, r.Protocol, r.Ports))
		}
		return lines
	}
	const group = "k8s-nlb-a0f5e8a1cweb k8s.default.web.c1 enterprise vpc-1"
	checkRows(t, rules, []row{
		{"none", plain, nil, nil},
		{"of IPv4", ranges("192.0.2.0/24", "10.0.0.0/8"), []string{group, "accept 10.0.0.0/8 ALL -1/-1", "accept 192.0.2.0/24 ALL -1/-1",
			"drop 0.0.0.0/0 ALL -1/-1"}, nil},
		{"of both families", all(set("ip-version", "DualStack"), ranges("10.0.0.0/8", "2001:db8::/32")),
			[]string{group, "accept 10.0.0.0/8 ALL -1/-1", "accept 2001:db8::/32 ALL -1/-1", "drop 0.0.0.0/0 ALL -1/-1", "drop ::/0 ALL -1/-1"},
			nil},
		{"of IPv6 beside IPv4, without IPv6", ranges("10.0.0.0/8", "2001:db8::/32"), []string{group, "accept 10.0.0.0/8 ALL -1/-1",
			"drop 0.0.0.0/0 ALL -1/-1"}, []string{
			"AnnotationNoEffect: loadBalancerSourceRanges: 2001:db8::/32 have no effect on a load balancer without IPv6",
		}},
		{"everybody", ranges("0.0.0.0/0"), nil, nil},
		{"not accepted", ranges("10.0.0.0/33"), nil,
			[]string{`InvalidAnnotation: loadBalancerSourceRanges: "10.0.0.0/33" is not an address block; accepted: blocks such as 192.0.2.0/24`}},
		{"not accepted, with a security group that is there", all(ranges("10.0.0.0/33"), existing(func(m *model.Model) {
			m.Access = &model.Access{SecurityGroup: alicloud.SecurityGroup{Name: "as it was"}}
		})), []string{"as it was"},
			[]string{`InvalidAnnotation: loadBalancerSourceRanges: "10.0.0.0/33" is not an address block; accepted: blocks such as 192.0.2.0/24`}},
		{"on a shared load balancer", all(ranges("10.0.0.0/8"), leads), nil, []string{
			"AnnotationNoEffect: loadBalancerSourceRanges have no effect on an NLB that Services share: its security groups act on all " +
				"listeners; remove " + key + "group for an NLB of its own",
		}},
	})
}

// leads has the Service decide on the load balancer of its group.
func leads(f *fixture) {
	set("group", "shop")(f)
	f.shared = &sharing.Shared{Group: marks.Group{ClusterID: "c1", Namespace: "default", Name: "shop"}, Product: "NLB", Room: "50 listeners",
		Leads: true}
}

// follows has Service "first" decide instead, with its annotations.
func follows(pairs ...string) func(*fixture) {
	return func(f *fixture) {
		leads(f)
		first := newFixture(80)
		first.svc = testkube.Service("first")
		set(pairs...)(first)
		f.shared.Leads, f.shared.Leader = false, first.svc
		f.shared.Params, _ = annotation.OfNLB(first.svc)
	}
}

// TestSharedLoadBalancers: the leader of a group decides on the load balancer, and each Service on its listeners.
func TestSharedLoadBalancers(t *testing.T) {
	t.Parallel()
	lines := func(m *model.Model) []string {
		found := slices.Concat(fields(struct {
			Name, AddressType string
			Tags              []alicloud.Tag
		}{m.LoadBalancer.Name, m.LoadBalancer.AddressType, m.LoadBalancer.Tags}), fields(m.Want, "Ownership"), listenerLines(m))
		for _, taken := range m.Taken {
			found = append(found, "taken "+taken.Name)
		}
		return found
	}
	group := []string{"AddressType=Internet", "Name=k8s-group-default-shop",
		"Tags=[map[Key:alicloud-ccm/load-balancer-group Value:c1/default/shop]]"}
	private := append([]string{"AddressType=Intranet"}, group[1:]...)
	with := func(lines []string, more ...string) []string { return append(slices.Clone(lines), more...) }
	taken := func(owner sharing.Owner) func(*fixture) {
		return all(port(81, corev1.ProtocolTCP), leads,
			func(f *fixture) { f.shared.Place.Taken = map[sharing.Port]sharing.Owner{{Number: 80}: owner} })
	}
	full := func(change func(*sharing.Place)) func(*fixture) {
		return all(leads, func(f *fixture) {
			f.shared.Place.Full = true
			change(&f.shared.Place)
		})
	}
	first := types.NamespacedName{Namespace: "default", Name: "first"}
	const own, other = "TCP 80 -> 30080.TCP", "TCP 81 -> 30081.TCP"
	checkRows(t, lines, []row{
		{"the leader", all(leads, set("cross-zone-enabled", "off")), with(group, "CrossZone=false", own), nil},
		{"another one", follows("address-type", "intranet"), with(private, own), nil},
		{"another one that asks for the same", all(follows("address-type", "intranet"), set("address-type", "intranet")), with(private, own),
			nil},
		{"another one that asks for something else", all(follows("address-type", "intranet"), set("address-type", "internet")), with(private,
			own), []string{
			`AnnotationNoEffect: ` + key +
				`address-type: "internet" has no effect: on the NLB of load balancer group default/shop, the oldest Service decides, which is ` +
				`default/first and has "intranet"`,
		}},
		{"a port that an older one has", taken(sharing.Owner{Name: first}), with(group, other, "taken tcp-80"), []string{
			`ListenerConflict: port 80 of load balancer group default/shop belongs to Service default/first, which is older; choose another ` +
				`port or group, or set ` + key + `group-overflow: "true"`,
		}},
		{"a port that a younger one keeps", taken(sharing.Owner{Name: first, Younger: true}), with(group, other, "taken tcp-80"), []string{
			`ListenerConflict: port 80 of load balancer group default/shop belongs to Service default/first, which cannot move to another load ` +
				`balancer of the group; choose another port or group, or set ` + key + `group-overflow: "true"`,
		}},
		{"a port of somebody else", taken(sharing.Owner{}), with(group, other, "taken tcp-80"), []string{
			`ListenerConflict: port 80 of load balancer group default/shop is in use by a listener that does not belong to the group; choose ` +
				`another port or group, or set ` + key + `group-overflow: "true"`,
		}},
		{"no room", full(func(p *sharing.Place) { p.Others = 50 }), with(group, "taken tcp-80"), []string{
			`ListenerConflict: the NLB of load balancer group default/shop has no room for the 1 port of the Service: it has room for 50 ` +
				`listeners, and others use 50; choose another group, set ` + key + `group-overflow: "true", or ` + alicloud.RaiseQuota,
		}},
		{"more ports than any has room for", full(func(p *sharing.Place) { p.TooLarge = true }), with(group, "taken tcp-80"), []string{
			"ListenerConflict: no NLB has room for the 1 port of the Service, which is in load balancer group default/shop, but for 50 " +
				"listeners; distribute the ports over several Services, or " + alicloud.RaiseQuota,
		}},
	})
}
