package nlb

import (
	"errors"
	"fmt"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

// Address types and IP versions of an NLB.
const (
	internet  = "Internet"
	intranet  = "Intranet"
	ipv4      = "ipv4"
	dualStack = "DualStack"
)

const (
	consoleProtection = "ConsoleProtection"
	nonProtection     = "NonProtection"
)

// An NLB answers in 2 to 10 zones.
const (
	minZones = 2
	maxZones = 10
)

func zoneParams() api.Param {
	return api.ObjectsOf("ZoneMappings", maxZones,
		api.Str("ZoneId", api.Required), api.Str("VSwitchId", api.Required), api.Str("PrivateIPv4Address"), api.Str("AllocationId"),
		api.Str("Ipv6Address"), api.Str("EipType"))
}

func (s service) instanceActions() []api.Action {
	return []api.Action{
		{Name: "CreateLoadBalancer", Kind: api.Write, Params: write(
			api.Str("AddressType", api.Required, api.OneOfAnyCase(internet, intranet)), api.Str("VpcId", api.Required), required(zoneParams()),
			api.Str("LoadBalancerName", api.Len(2, 128)), api.Str("AddressIpVersion", api.OneOfAnyCase(ipv4, dualStack)),
			api.Str("LoadBalancerType", api.OneOfAnyCase("Network")),
			api.Str("BandwidthPackageId"), api.Str("ResourceGroupId"), api.ListOf("SecurityGroupIds", 0),
			api.Flag("DeletionProtectionConfig.Enabled"), api.Str("DeletionProtectionConfig.Reason", api.Len(2, 128)),
			api.Str("ModificationProtectionConfig.Status", api.OneOfAnyCase(consoleProtection, nonProtection)),
			api.Str("ModificationProtectionConfig.Reason", api.Len(2, 128)),
			cloud.TagParams(cloud.MaxTags),
		), Run: s.create},
		{Name: "GetLoadBalancerAttribute", Kind: api.Read, Params: []api.Param{lbID()}, Run: s.get},
		{Name: "ListLoadBalancers", Kind: api.Read, Params: list(
			api.ListOf("LoadBalancerIds", 20), api.ListOf("LoadBalancerNames", 20), api.ListOf("VpcIds", 10), cloud.TagParams(20),
			api.Str("LoadBalancerStatus"), api.Str("AddressType"), api.Str("AddressIpVersion"), api.Str("ZoneId"),
		), Run: s.list},
		{Name: "DeleteLoadBalancer", Kind: api.Write, Params: write(lbID()), Run: s.delete},
	}
}

func required(p api.Param) api.Param {
	api.Required(&p)
	return p
}

// create answers a repeated call with the first result, also where that load balancer is gone.
func (s service) create(c *api.Call) (any, error) {
	answer, err := s.once(c, func() (any, error) { return s.createNew(c) })
	if first, ok := answer.(created); ok && err == nil {
		if lb, exists := s.NLBs.Get(first.id); (!exists || lb.Phase.At(c.Now) == "") && !c.Holds("nlb.token-of-deleted") {
			answer, err = s.createNew(c)
		}
	}
	if answer, ok := answer.(created); ok {
		return answer.Object, err
	}
	return answer, err
}

func (s service) createNew(c *api.Call) (any, error) {
	if s.NLBs.Len() >= s.Limits.NLBs {
		return nil, quota("nlb_quota_loadbalancers_num", s.Limits.NLBs)
	}
	if _, ok := s.VPCs.Get(c.Str("VpcId")); !ok {
		return nil, notFound("Vpc", c.Str("VpcId"))
	}
	if bad := s.checkSecurityGroups(c.Str("VpcId"), c.List("SecurityGroupIds")); bad != nil {
		return nil, bad
	}
	if bad := s.checkZones(c, c.Str("VpcId"), c.Str("AddressType")); bad != nil {
		return nil, bad
	}
	if bad := s.checkPackage(c.Str("BandwidthPackageId")); bad != nil {
		return nil, bad
	}
	if bad := checkNames(c, "LoadBalancerName"); bad != nil {
		return nil, bad
	}
	return checked(c, func() (any, error) { return s.add(c) })
}

func quota(name string, most int) *api.Error {
	return api.BadRequest("QuotaExceeded.QuotaInsufficient", "The quota %s of %d is used up.", name, most)
}

// add creates an instance that passed the checks.
func (s service) add(c *api.Call) (any, error) {
	lb := &cloud.NLB{
		Object: s.NewObject("nlb"), Name: c.Str("LoadBalancerName"), VPCID: c.Str("VpcId"),
		ResourceGroupID: c.Or("ResourceGroupId", "rg-emulator"),
		AddressType:     c.Str("AddressType"), IPv6AddressType: intranet, AddressVersion: c.Or("AddressIpVersion", ipv4),
		SecurityGroups: c.List("SecurityGroupIds"), BandwidthPackageID: c.Str("BandwidthPackageId"), CrossZone: true,
		DeletionProtection:       c.Bool("DeletionProtectionConfig.Enabled", false),
		DeletionProtectionReason: c.Str("DeletionProtectionConfig.Reason"),
		ModificationProtection:   c.Or("ModificationProtectionConfig.Status", nonProtection),
		ModificationProtected:    c.Str("ModificationProtectionConfig.Reason"),
	}
	lb.Tags = lb.Tags.With(cloud.TagsIn(c))
	// Default names of this form are CNAME targets: https://www.alibabacloud.com/help/en/slb/product-overview/alb-and-nlb-domain-name-upgrade
	lb.DNSName = fmt.Sprintf("%s.%s.nlb.aliyuncsslb.com", lb.ID, s.Region)
	if !c.Holds("nlb.default-name") {
		lb.DNSName = fmt.Sprintf("%s.%s.nlb.aliyuncs.com", lb.ID, s.Region)
	}
	for _, want := range c.Objects("ZoneMappings") {
		zone, bad := s.newZone(lb, want)
		if bad != nil {
			s.releaseZones(lb.Zones)
			return nil, bad
		}
		lb.Zones = append(lb.Zones, zone)
	}
	end := cloud.NLBActive
	if c.Job == api.JobFails {
		end = cloud.NLBCreateFailed
	}
	lb.Phase = s.BeginFor(cloud.NLBProvisioning, end, c.Now, s.longer(c, s.NLBCreation()))
	if c.Job == api.JobHangs {
		lb.Phase = cloud.Steady(cloud.NLBProvisioning)
	}
	s.NLBs.Add(lb)
	name := "LoadbalancerId"
	if !c.Holds("nlb.small-b") {
		name = "LoadBalancerId"
	}
	return created{api.Object{{Name: name, Value: lb.ID}, {Name: "OrderId", Value: lb.Seq}}, lb.ID}, nil
}

// longer is how long the creation or deletion of an instance takes: longer than a job, unless that is flipped.
func (s service) longer(c *api.Call, d time.Duration) time.Duration {
	if s.Settle > 0 && !c.Holds("nlb.durations") {
		return s.Settle
	}
	return d
}

// created is the answer to the creation of an instance. The small b of LoadbalancerId is the API's own.
type created struct {
	api.Object
	id string
}

// newZone takes the addresses of an instance in one zone.
func (s service) newZone(lb *cloud.NLB, want api.Params) (cloud.NLBZone, error) {
	zone := cloud.NLBZone{ZoneID: want.Str("ZoneId"), VSwitchID: want.Str("VSwitchId"), EniID: cloud.NewID("eni"), Status: cloud.NLBActive}
	vsw, _ := s.VSwitches.Get(zone.VSwitchID)
	address, err := s.TakeAddress(vsw, want.Str("PrivateIPv4Address"))
	switch {
	case errors.Is(err, cloud.ErrNoAddress):
		return zone, api.BadRequest("ResourceNotEnough.VSwitchIp", "The vSwitch %s has no free address.", vsw.ID)
	case errors.Is(err, cloud.ErrAddressTaken) && vsw.Contains(want.Str("PrivateIPv4Address")):
		return zone, api.BadRequest("ResourceInUse.IP", "The address %s is in use.", want.Str("PrivateIPv4Address"))
	case err != nil:
		return zone, illegal("PrivateIPv4Address", "%v", err)
	}
	zone.PrivateIP = address
	if lb.AddressVersion == dualStack {
		if zone.IPv6, err = s.TakeIPv6(vsw); err != nil {
			s.ReleaseAddress(vsw.ID, address)
			return zone, api.BadRequest("OperationFailed.vSwitchNotSupportIpv6", "The vSwitch %s has no IPv6.", vsw.ID)
		}
	}
	if lb.AddressType == internet {
		s.publish(lb, &zone, want.Str("AllocationId"))
	}
	return zone, nil
}

// publish gives a zone its public address: one of the user's, which the checks found free, or a new one.
func (s service) publish(lb *cloud.NLB, zone *cloud.NLBZone, allocationID string) {
	if e, ok := s.EIPs.Get(allocationID); ok {
		zone.AllocationID, zone.PublicIP, zone.IsEIPOfUser = e.ID, e.Address, true
		e.InstanceID, e.InstanceType, e.PrivateIP, e.Phase = lb.ID, "NlbInstance", zone.PrivateIP, cloud.Steady(cloud.InUse)
		return
	}
	zone.AllocationID, zone.PublicIP = cloud.NewID("eip"), s.NewPublicIP(false)
}

// unpublish takes a zone's public address away; one of the user's is free again.
func (s service) unpublish(zone *cloud.NLBZone) {
	if e, ok := s.EIPs.Get(zone.AllocationID); ok && zone.IsEIPOfUser {
		e.InstanceID, e.InstanceType, e.PrivateIP, e.Phase = "", "", "", cloud.Steady(cloud.Available)
	}
	zone.AllocationID, zone.PublicIP, zone.IsEIPOfUser = "", "", false
}

func (s service) releaseZones(zones []cloud.NLBZone) {
	for i := range zones {
		s.unpublish(&zones[i])
		s.ReleaseZone(zones[i])
	}
}

// checkZones holds the zones of a call to the rules. The list is complete: it has every zone of the instance.
func (s service) checkZones(c *api.Call, vpcID, addressType string) *api.Error {
	zones := c.Objects("ZoneMappings")
	if len(zones) < s.zonesNeeded(c) && c.Holds("nlb.zones-2") {
		return api.BadRequest("InvalidZones", "At least %d zones are needed.", minZones)
	}
	seen, addresses := map[string]bool{}, map[string]bool{}
	for _, z := range zones {
		if bad := s.checkVSwitch(z.Str("VSwitchId"), z.Str("ZoneId"), vpcID); bad != nil {
			return bad
		}
		if seen[z.Str("ZoneId")] {
			return api.BadRequest("OperationFailed.DuplicateZones.", "The zone %s is given twice.", z.Str("ZoneId"))
		}
		id := z.Str("AllocationId")
		if id != "" && addresses[id] {
			return api.BadRequest("DuplicatedParam.AllocationId", "The address %s is given twice.", id)
		}
		seen[z.Str("ZoneId")], addresses[id] = true, true
		if bad := s.checkElastic(c, id, addressType); bad != nil {
			return bad
		}
	}
	return nil
}

// checkElastic checks an elastic IP address for one zone; "" is none.
func (s service) checkElastic(c *api.Call, id, addressType string) *api.Error {
	switch {
	case id == "":
		return nil
	case addressType != internet:
		return illegal("AllocationId", "an intranet load balancer takes no elastic IP address")
	case c.Has("BandwidthPackageId") && !c.Holds("nlb.package-with-addresses"):
		return illegal("AllocationId", "an elastic IP address does not go with a bandwidth package")
	}
	return s.checkEIP(id, c)
}

// zonesNeeded is how many zones an instance needs: no more than the region has.
func (s service) zonesNeeded(c *api.Call) int {
	if all := len(s.Zones()); all < minZones && c.Holds("nlb.zones-1-in-small-regions") {
		return all
	}
	return minZones
}

func (s service) checkVSwitch(id, zone, vpcID string) *api.Error {
	vsw, ok := s.VSwitches.Get(id)
	switch {
	case !ok || vsw.VPCID != vpcID:
		return api.NotFound("ResourceNotFound.VSwitch", "The specified vSwitch %s is not found.", id)
	case vsw.ZoneID != zone:
		return api.BadRequest("Mismatch.ZoneIdAndVswitchId", "The vSwitch %s is not in the zone %s.", id, zone)
	}
	return nil
}

func (s service) checkEIP(id string, c *api.Call) *api.Error {
	if id == "" {
		return nil
	}
	e, ok := s.EIPs.Get(id)
	switch {
	case !ok:
		return api.NotFound("ResourceNotFound.Eip", "The specified address %s is not found.", id)
	case e.InternetChargeType != "PayByTraffic":
		return api.BadRequest("OperationDenied.OnlyPayByTrafficSupported", "The address %s is not paid by traffic.", id)
	case e.InstanceID != c.Str("LoadBalancerId") && e.Phase.At(c.Now) != cloud.Available:
		return api.BadRequest("ResourceAlreadyAssociated.AllocationId", "The address %s is in use.", id)
	}
	return nil
}

func (s service) get(c *api.Call) (any, error) {
	lb, err := s.loadBalancer(c, c.Str("LoadBalancerId"))
	if err != nil {
		return nil, err
	}
	early := lb.Phase.At(c.Now) == cloud.NLBProvisioning && c.Now.Sub(lb.Created) < s.NLBCreation()/2
	if early && c.Holds("nlb.reads-at-first") && s.NLBReadsFailAtFirst {
		return nil, api.BadRequest("OperationFailed.GetXipFailed", "The addresses of %s are not known yet.", lb.ID)
	}
	return struct {
		instanceView
		Tags []attributeTag
	}{s.view(c, lb), attributeTags(lb.Tags)}, nil
}

func attributeTags(tags cloud.Tags) []attributeTag {
	views := make([]attributeTag, 0, len(tags))
	for _, t := range tags {
		views = append(views, attributeTag{t.Key, t.Value})
	}
	return views
}

func (s service) list(c *api.Call) (any, error) {
	wanted := cloud.HavingAny(cloud.TagsIn(c)) // a search for load balancers by several tags combines them with OR
	all := s.NLBs.Select(func(lb *cloud.NLB) bool {
		status := lb.Phase.At(c.Now)
		return status != "" && c.Sees(lb.Created) && passes(c.List("LoadBalancerIds"), lb.ID) && passes(c.List("LoadBalancerNames"), lb.Name) &&
			passes(c.List("VpcIds"), lb.VPCID) && c.Or("LoadBalancerStatus", status) == status &&
			c.Or("AddressType", lb.AddressType) == lb.AddressType &&
			c.Or("AddressIpVersion", lb.AddressVersion) == lb.AddressVersion && cloud.Searched(c, lb.Object, lb.Tagged, wanted)
	})
	type view struct {
		instanceView
		Tags []tag
	}
	return listed(c, "LoadBalancers", all, func(lb *cloud.NLB) view { return view{s.view(c, lb), tagViews(lb.Tags)} })
}

// delete needs an instance that is neither protected nor being changed. It takes the listeners along; server groups stay.
func (s service) delete(c *api.Call) (any, error) {
	lb, err := s.loadBalancer(c, c.Str("LoadBalancerId"))
	if err != nil {
		return nil, err
	}
	switch status := lb.Phase.At(c.Now); {
	case lb.DeletionProtection:
		return nil, api.BadRequest("OperationDenied.DeletionProtectionEnabled", "The deletion protection of %s is on.", lb.ID)
	case status == cloud.NLBConfiguring:
		return nil, conflictLock(lb.ID)
	case status != cloud.NLBActive && status != cloud.NLBCreateFailed && status != cloud.NLBInactive:
		return nil, api.BadRequest("IncorrectStatus.loadbalancer", "The status of %s is %s.", lb.ID, status)
	}
	return checked(c, func() (any, error) {
		job := s.job(c)
		if !applies(c) {
			return jobAnswer{job}, nil
		}
		for _, l := range s.NLBListenersOf(lb.ID, c.Now) {
			l.Phase = s.BeginFor(cloud.Deleting, "", c.Now, s.longer(c, s.NLBDeletion()))
		}
		for i := range lb.Zones {
			s.unpublish(&lb.Zones[i])
		}
		lb.Phase = s.BeginFor(cloud.Deleting, "", c.Now, s.longer(c, s.NLBDeletion()))
		s.Reap(c.Now)
		return jobAnswer{job}, nil
	})
}
