package nlb

import (
	"slices"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

func (s service) networkActions() []api.Action {
	groups := api.ListOf("SecurityGroupIds", 0, api.Required)
	pack := api.Str("BandwidthPackageId", api.Required)
	return []api.Action{
		{Name: "UpdateLoadBalancerAddressTypeConfig", Kind: api.Write, Params: write(
			lbID(), api.Str("AddressType", api.Required, api.OneOfAnyCase(internet, intranet)), zoneParams(),
		), Run: s.changing(s.updateAddressType)},
		{Name: "UpdateLoadBalancerZones", Kind: api.Write, Params: write(lbID(), required(zoneParams())), Run: s.changing(s.updateZones)},
		{Name: "LoadBalancerJoinSecurityGroup", Kind: api.Write, Params: write(lbID(), groups), Run: s.changing(s.join)},
		{Name: "LoadBalancerLeaveSecurityGroup", Kind: api.Write, Params: write(lbID(), groups), Run: s.changing(s.leave)},
		{Name: "AttachCommonBandwidthPackageToLoadBalancer", Kind: api.Write, Params: write(lbID(), pack), Run: s.changing(s.attachPackage)},
		{Name: "DetachCommonBandwidthPackageFromLoadBalancer", Kind: api.Write, Params: write(lbID(), pack), Run: s.changing(s.detachPackage)},
		{Name: "DescribeZones", Kind: api.Read, Params: []api.Param{api.Str("AcceptLanguage")}, Run: s.zones},
		{Name: "DescribeRegions", Kind: api.Read, Params: []api.Param{api.Str("AcceptLanguage")}, Run: s.regions},
	}
}

func (s service) zones(*api.Call) (any, error) {
	type view struct{ ZoneId, LocalName string } //nolint:revive // names on the wire
	views := []view{}
	for _, zone := range s.Zones() {
		views = append(views, view{zone, zone})
	}
	return struct{ Zones []view }{views}, nil
}

func (s service) regions(*api.Call) (any, error) {
	type view struct{ RegionId, LocalName, RegionEndpoint string } //nolint:revive // names on the wire
	return struct{ Regions []view }{[]view{{s.Region, s.Region, "nlb." + s.Region + ".aliyuncs.com"}}}, nil
}

func (s service) updateAddressType(c *api.Call, lb *cloud.NLB, apply bool) *api.Error {
	want := c.Str("AddressType")
	if want == lb.AddressType {
		return api.BadRequest("OperationDenied.AddressTypeNotChanged", "The address type of %s is %s already.", lb.ID, want)
	}
	addresses := map[string]string{}
	for _, z := range c.Objects("ZoneMappings") {
		if bad := s.checkEIP(z.Str("AllocationId"), c); bad != nil {
			return bad
		}
		addresses[z.Str("ZoneId")] = z.Str("AllocationId")
	}
	if !apply {
		return nil
	}
	lb.AddressType = want
	for i := range lb.Zones {
		if want == internet {
			s.publish(lb, &lb.Zones[i], addresses[lb.Zones[i].ZoneID])
		} else {
			s.unpublish(&lb.Zones[i])
		}
	}
	return nil
}

// updateZones replaces the list of zones: those that are missing from it are left. A zone's vSwitch and address cannot change.
func (s service) updateZones(c *api.Call, lb *cloud.NLB, apply bool) *api.Error {
	if bad := s.checkZones(c, lb.VPCID, lb.AddressType); bad != nil {
		return bad
	}
	var kept, left []cloud.NLBZone
	wanted := map[string]api.Params{}
	for _, z := range c.Objects("ZoneMappings") {
		wanted[z.Str("ZoneId")] = z
	}
	for _, z := range lb.Zones {
		want, stays := wanted[z.ZoneID]
		switch {
		case !stays:
			left = append(left, z)
			continue
		case want.Str("VSwitchId") != z.VSwitchID:
			return api.BadRequest("OperationDenied.ZoneVSwitchChanged", "The vSwitch of the zone %s cannot change.", z.ZoneID)
		case want.Or("PrivateIPv4Address", z.PrivateIP) != z.PrivateIP:
			return api.BadRequest("OperationDenied.ProtectedPrivateIPv4AddressChanged", "The address in the zone %s cannot change.", z.ZoneID)
		}
		kept = append(kept, z)
		delete(wanted, z.ZoneID)
	}
	if !apply {
		return nil
	}
	for _, z := range c.Objects("ZoneMappings") {
		if _, isNew := wanted[z.Str("ZoneId")]; !isNew {
			continue
		}
		zone, err := s.newZone(lb, z)
		if err != nil {
			return api.BadRequest("ResourceNotEnough.VSwitchIp", "%v", err)
		}
		kept = append(kept, zone)
	}
	for _, z := range left {
		lb.LeftZones = append(lb.LeftZones, cloud.NLBLeftZone{NLBZone: z, Until: c.Now.Add(cloud.NLBNameLife)})
	}
	s.releaseZones(left)
	lb.Zones = kept
	return nil
}

// checkSecurityGroups checks that security groups exist in a VPC and are of one type.
func (s service) checkSecurityGroups(vpcID string, ids []string) *api.Error {
	if len(ids) > s.Limits.SecurityGroupsPerLB {
		return quota("securitygroup", s.Limits.SecurityGroupsPerLB)
	}
	kind := ""
	for _, id := range ids {
		g, ok := s.SecurityGroups.Get(id)
		switch {
		case !ok:
			return notFound("SecurityGroup", id)
		case g.VPCID != vpcID:
			return api.BadRequest("Mismatch.VpcId", "The security group %s is not in the VPC %s.", id, vpcID)
		case kind != "" && kind != g.Type:
			return api.BadRequest("Conflict.SecurityGroup", "Basic and advanced security groups cannot be mixed.")
		}
		kind = g.Type
	}
	return nil
}

func (s service) join(c *api.Call, lb *cloud.NLB, apply bool) *api.Error {
	all := slices.Clone(lb.SecurityGroups)
	for _, id := range c.List("SecurityGroupIds") {
		if slices.Contains(all, id) {
			return api.BadRequest("ResourceAlreadyAssociated.SecurityGroup", "The load balancer %s has joined %s already.", lb.ID, id)
		}
		all = append(all, id)
	}
	if bad := s.checkSecurityGroups(lb.VPCID, all); bad != nil {
		return bad
	}
	if apply {
		lb.SecurityGroups = all
	}
	return nil
}

func (s service) leave(c *api.Call, lb *cloud.NLB, apply bool) *api.Error {
	left := c.List("SecurityGroupIds")
	for _, id := range left {
		if !slices.Contains(lb.SecurityGroups, id) {
			return api.BadRequest("ResourceNotAssociated.SecurityGroup", "The load balancer %s is not in %s.", lb.ID, id)
		}
	}
	if apply {
		lb.SecurityGroups = slices.DeleteFunc(lb.SecurityGroups, func(id string) bool { return slices.Contains(left, id) })
	}
	return nil
}

func (s service) attachPackage(c *api.Call, lb *cloud.NLB, apply bool) *api.Error {
	switch {
	case lb.AddressType != internet:
		return api.BadRequest("OperationDenied.InternalLoadBalancer", "The load balancer %s is not public.", lb.ID)
	case lb.BandwidthPackageID != "":
		return api.BadRequest("ResourceAlreadyAssociated.BandwidthPackageId", "The load balancer %s has the package %s.", lb.ID,
			lb.BandwidthPackageID)
	}
	if bad := s.checkPackage(c.Str("BandwidthPackageId")); bad != nil {
		return bad
	}
	if apply {
		lb.BandwidthPackageID = c.Str("BandwidthPackageId")
	}
	return nil
}

func (s service) checkPackage(id string) *api.Error {
	if id != "" && !slices.Contains(s.BandwidthPackages, id) {
		return notFound("BandwidthPackage", id)
	}
	return nil
}

func (s service) detachPackage(c *api.Call, lb *cloud.NLB, apply bool) *api.Error {
	if lb.BandwidthPackageID != c.Str("BandwidthPackageId") {
		return notFound("BandwidthPackage", c.Str("BandwidthPackageId"))
	}
	if apply {
		lb.BandwidthPackageID = ""
	}
	return nil
}
