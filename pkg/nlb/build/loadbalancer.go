package build

import (
	"cmp"
	"slices"
	"strings"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/model"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// vpcID is that of the load balancer, of which its groups have to be, too.
func (b *builder) vpcID() string { return cmp.Or(b.observed.LoadBalancer.VPCID, b.in.Config.VPCID) }

func (b *builder) resourceGroup() string {
	return b.in.Params.Or(annotation.ResourceGroupID, b.in.Config.ResourceGroupID)
}

// apiSpelling returns the value of an address type as the API spells it.
func apiSpelling(value string) string { return strings.ToUpper(value[:1]) + value[1:] }

// loadBalancer sets what a new load balancer has, and what has to be of an existing one.
func (b *builder) loadBalancer() {
	params := b.in.Params
	tags := annotation.NLBTagsOf(params)
	b.model.LoadBalancer = alicloud.NLB{
		Name: cmp.Or(params.Get(annotation.Name), b.in.Shared.BalancerName(b.in.Service)), VPCID: b.in.Config.VPCID, ResourceGroupID: b.resourceGroup(),
		AddressType: apiSpelling(params.AddressType()), AddressIPVersion: params.Or(annotation.IPVersion, alicloud.NLBIPv4),
		Zones:          annotation.ZonesOf(params),
		SecurityGroups: annotation.ListOf(params, annotation.SecurityGroupIDs), BandwidthPackageID: b.bandwidthPackage(), CrossZone: true,
		DeletionProtection:           params.Or(annotation.DeleteProtection, alicloud.ProtectionOn) == alicloud.ProtectionOn,
		ModificationProtection:       params.Or(annotation.ModificationProtection, alicloud.ConsoleProtection),
		ModificationProtectionReason: mark.ProtectionReason,
		Tags:                         slices.Concat(b.ownerTags(), tags),
	}
	if b.in.isNewWithoutZones() {
		b.model.LoadBalancer.Zones = annotation.ZonesIn(b.in.Config.NLBZoneMaps)
	}
	if len(b.in.Zones) > 0 {
		b.model.LoadBalancer.Zones = slices.Clone(b.in.Zones)
		b.addProblem(problem.ReasonZonesChosen, "%s: the NLB is created in %s, where the most nodes are; it stays there", annotation.ZoneMaps,
			ZonesText(b.in.Zones))
	}
	b.elasticAddresses()
	want := &b.model.Want
	want.Tags, want.RemoveTags = tags, b.in.RemoveTags
	if b.observed.LoadBalancer.ID != "" && !b.observed.Reused {
		want.Ownership = b.ownerTags()
	}
	if b.observed.Reused && !b.model.Override {
		return
	}
	if params.Has(annotation.Name) {
		want.Name = &b.model.LoadBalancer.Name
	}
	b.setExposure(want)
	want.CrossZone = b.flagOf(annotation.CrossZoneEnabled)
	if params.Has(annotation.BandwidthPackageID) || annotation.Emptied(b.in.Service.Annotations, annotation.BandwidthPackageID) {
		pack := b.bandwidthPackage()
		want.BandwidthPackage = &pack
	}
	b.setProtections(want)
	if b.observed.LoadBalancer.ID != "" {
		b.securityGroups(want)
		b.compareZones(want)
		b.reportImmutable()
	}
}

// setExposure sets whether the load balancer faces the internet, by IPv4 and by IPv6. Where public load balancers are switched off, one
// that does not face the internet stays as it is.
func (b *builder) setExposure(want *model.Want) {
	params, have := b.in.Params, &b.observed.LoadBalancer
	allowed := func(suffix annotation.Suffix, kind, now string) bool {
		if kind != alicloud.NLBInternet || !b.in.Config.DisablePublicSLB || strings.EqualFold(now, kind) {
			return true
		}
		b.addProblem(problem.ReasonFeatureNotSupported,
			"%s: internet has no effect: disablePublicSLB in the cloud-config switches public load balancers off", suffix)
		return false
	}
	isNew := have.ID == "" // the engine refuses it as a whole
	if params.Has(annotation.AddressType) && (isNew || allowed(annotation.AddressType, b.model.LoadBalancer.AddressType, have.AddressType)) {
		want.AddressType = &b.model.LoadBalancer.AddressType
	}
	if kind := params.Get(annotation.IPv6AddressType); kind != "" && b.in.dualStack() {
		if kind = apiSpelling(kind); allowed(annotation.IPv6AddressType, kind, have.IPv6AddressType) {
			want.IPv6AddressType = &kind
		}
	}
}

// elasticAddresses leaves out the elastic IP addresses of a load balancer that does not face the internet: the API takes none.
func (b *builder) elasticAddresses() {
	if b.in.Params.AddressType() == alicloud.AddressInternet {
		return
	}
	zones, dropped := b.model.LoadBalancer.Zones, false
	for i := range zones {
		dropped = dropped || zones[i].AllocationID != ""
		zones[i].AllocationID = ""
	}
	if dropped {
		b.addProblem(problem.ReasonAnnotationNoEffect, "%s: elastic IP addresses have no effect with %s: intranet", annotation.ZoneMaps,
			annotation.AddressType)
	}
}

// bandwidthPackage is that of an internet-facing load balancer.
func (b *builder) bandwidthPackage() string {
	if b.in.Params.AddressType() == alicloud.AddressIntranet {
		return ""
	}
	return b.in.Params.Get(annotation.BandwidthPackageID)
}

// setProtections are left alone where no annotation names them: their owner may have changed them.
func (b *builder) setProtections(want *model.Want) {
	if b.model.Reused {
		return
	}
	want.DeleteProtection, want.Modification = b.flagOf(annotation.DeleteProtection), b.textOf(annotation.ModificationProtection)
}

// securityGroups compares the groups of an existing load balancer. An annotation names all of them; one that was removed leaves those
// that were joined for it.
func (b *builder) securityGroups(want *model.Want) {
	params, have := b.in.Params, b.observed.LoadBalancer.SecurityGroups
	named := annotation.ListOf(params, annotation.SecurityGroupIDs)
	want.JoinGroups = slices.DeleteFunc(slices.Clone(named), func(id string) bool { return slices.Contains(have, id) })
	exact := len(named) > 0 || annotation.Emptied(b.in.Service.Annotations, annotation.SecurityGroupIDs)
	for _, id := range have {
		ours := b.observed.Access != nil && b.observed.Access.ID == id
		if !ours && !slices.Contains(named, id) && (exact || slices.Contains(b.in.LeaveGroups, id)) &&
			!params.Refused(annotation.SecurityGroupIDs) {
			want.LeaveGroups = append(want.LeaveGroups, id)
		}
	}
}

// minZones is how many zones a load balancer keeps.
const minZones = 2

// compareZones compares the zones of an existing load balancer: what is in a zone cannot change.
func (b *builder) compareZones(want *model.Want) {
	wanted, have := b.model.LoadBalancer.Zones, b.observed.LoadBalancer.Zones
	if len(wanted) == 0 {
		return
	}
	var zones []alicloud.NLBZone
	var fixed []string
	changed := false
	for _, zone := range wanted {
		at := slices.IndexFunc(have, func(h alicloud.NLBZone) bool { return h.ZoneID == zone.ZoneID })
		if at < 0 {
			changed = true
			zones = append(zones, zone)
			continue
		}
		there := have[at]
		if b.changesZone(&zone, &there) {
			fixed = append(fixed, zone.ZoneID)
		}
		zones = append(zones, alicloud.NLBZone{ZoneID: there.ZoneID, VSwitchID: there.VSwitchID})
	}
	if len(fixed) > 0 {
		b.addProblem(problem.ReasonImmutableAttribute,
			"%s: vSwitch, address and elastic IP address of an existing zone cannot change (%s); re-create the Service for it",
			annotation.ZoneMaps, strings.Join(fixed, ", "))
	}
	if gone := len(have) - countOverlap(have, wanted); gone > 0 {
		if len(zones) < minZones {
			b.addProblem(problem.ReasonImmutableAttribute, "%s: a load balancer keeps at least %d zones", annotation.ZoneMaps, minZones)
			return
		}
		changed = true
	}
	if changed {
		want.Zones = zones
	}
}

// changesZone reports whether the annotation names something else for a zone than what is there. Addresses that it leaves out are the
// cloud's choice, and an elastic IP address counts only while the load balancer faces the internet.
func (b *builder) changesZone(wanted, there *alicloud.NLBZone) bool {
	return there.VSwitchID != wanted.VSwitchID || wanted.PrivateIPv4 != "" && there.PrivateIPv4 != wanted.PrivateIPv4 ||
		wanted.AllocationID != "" && there.AllocationID != wanted.AllocationID && b.observed.LoadBalancer.AddressType == alicloud.NLBInternet
}

// countOverlap counts the zones in both lists.
func countOverlap(a, b []alicloud.NLBZone) int {
	n := 0
	for _, zone := range a {
		if slices.ContainsFunc(b, func(z alicloud.NLBZone) bool { return z.ZoneID == zone.ZoneID }) {
			n++
		}
	}
	return n
}

// reportImmutable reports annotations whose values an existing load balancer cannot take over.
func (b *builder) reportImmutable() {
	params, have := b.in.Params, &b.observed.LoadBalancer
	if version := params.Get(annotation.IPVersion); version != "" && have.AddressIPVersion != "" &&
		!strings.EqualFold(version, have.AddressIPVersion) {
		b.addProblem(problem.ReasonImmutableAttribute, "%s: %s cannot be changed, the NLB has %s; re-create the Service for it",
			annotation.IPVersion, version, have.AddressIPVersion)
	}
	if id := params.Get(annotation.ResourceGroupID); id != "" && have.ResourceGroupID != "" && id != have.ResourceGroupID {
		b.addProblem(problem.ReasonImmutableAttribute, "%s: %s cannot be changed, the NLB is in %s", annotation.ResourceGroupID, id,
			have.ResourceGroupID)
	}
}

const (
	acceptPriority = 1
	dropPriority   = 100
	everyProtocol  = "ALL"
	everyPort      = "-1/-1"
)

// buildAccess makes the security group for the source ranges. Its accept rules alone restrict nothing, because each NLB accepts everybody
// with the lowest priority: a drop rule of the same priority wins over that.
// Source: https://www.alibabacloud.com/help/en/slb/network-load-balancer/user-guide/add-an-nlb-instance-to-a-security-group.
func (b *builder) buildAccess() {
	svc := b.in.Service
	if len(annotation.SourceRangesOf(svc)) == 0 {
		return
	}
	if b.in.Shared != nil {
		b.addProblem(problem.ReasonAnnotationNoEffect,
			"loadBalancerSourceRanges have no effect on an NLB that Services share: its security groups act on all listeners; remove %s for an NLB of its own",
			annotation.Group)
		return
	}
	if b.observed.Reused || b.in.Params.Has(annotation.LoadBalancerID) {
		b.addProblem(problem.ReasonAnnotationNoEffect,
			"loadBalancerSourceRanges have no effect on an existing NLB: its security groups are its owner's")
		return
	}
	blocks, problems := annotation.ParseBothFamilies(svc, b.in.dualStack())
	b.problems = append(b.problems, problems...)
	if problem.HasInvalid(problems) {
		b.model.HoldCreation = true        // it would be open to everybody
		b.model.Access = b.observed.Access // as it was
		return
	}
	if len(blocks) == 0 {
		return
	}
	name, description := b.owner.NLBSecurityGroup(svc.UID)
	access := &model.Access{SecurityGroup: alicloud.SecurityGroup{
		Name: name, Description: description, VPCID: b.vpcID(), Type: alicloud.SecurityGroupEnterprise, ResourceGroupID: b.resourceGroup(),
		Tags: mark.Tags(svc, b.in.ClusterID),
	}}
	rule := func(cidr string, drop bool, priority int) {
		access.Rules = append(access.Rules,
			alicloud.SecurityRule{Drop: drop, Priority: priority, Protocol: everyProtocol, Ports: everyPort, CIDR: cidr, Description: description})
	}
	for _, block := range blocks {
		rule(block, false, acceptPriority)
	}
	rule("0.0.0.0/0", true, dropPriority)
	if b.in.dualStack() {
		rule("::/0", true, dropPriority)
	}
	b.model.Access = access
}
