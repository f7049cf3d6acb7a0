package vpc

import (
	"strconv"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

// Kinds of resources that an EIP can be bound to.
const (
	toECS = "EcsInstance"
	toSLB = "SlbInstance"
	toENI = "NetworkInterface"
)

func (v service) eipActions() []api.Action {
	id := api.Str("AllocationId", api.Required)
	kind := api.Str("InstanceType", api.OneOf(toECS, toSLB, toENI, "Nat", "HaVip"))
	return []api.Action{
		{Name: "DescribeEipAddresses", Kind: api.Read, Params: append(api.Numbered(100),
			api.Str("AllocationId"), api.Str("EipAddress"), api.Str("EipName"),
			api.Str("Status", api.OneOf(cloud.Available, cloud.InUse, cloud.Associating, cloud.Unassociating, cloud.Releasing)),
			api.Str("AssociatedInstanceType", api.OneOf(toECS, toSLB, toENI, "Nat", "HaVip", "NlbInstance")), api.Str("AssociatedInstanceId"),
			api.Str("ChargeType", api.OneOf("PostPaid", "PrePaid")), api.Str("ResourceGroupId"), cloud.TagParams(cloud.MaxTags), api.Flag("DryRun")),
			Run: v.describeEIPs},
		{Name: "AllocateEipAddress", Kind: api.Write, Params: []api.Param{
			api.Num("Bandwidth", 1, 1000), api.Str("InternetChargeType", api.OneOf("PayByTraffic", "PayByBandwidth")),
			api.Str("InstanceChargeType", api.OneOf("PostPaid", "PrePaid")), api.Str("Name", api.Len(1, 128)),
			api.Str("Description", api.Len(2, 256)),
			api.Str("ISP"), api.Str("ResourceGroupId"), api.Str("ClientToken", api.Len(1, 64)),
		}, Run: v.allocateEIP},
		{Name: "AssociateEipAddress", Kind: api.Write, Params: []api.Param{
			id, api.Str("InstanceId", api.Required), kind, api.Str("InstanceRegionId"), api.Str("PrivateIpAddress"), api.Str("Mode"),
			api.Str("ClientToken", api.Len(1, 64)),
		}, Run: v.associateEIP},
		{Name: "UnassociateEipAddress", Kind: api.Write, Params: []api.Param{
			id, api.Str("InstanceId"), kind, api.Flag("Force"), api.Str("ClientToken", api.Len(1, 64)),
		}, Run: v.unassociateEIP},
		{Name: "ReleaseEipAddress", Kind: api.Write, Params: []api.Param{id}, Run: v.releaseEIP},
	}
}

type eipView struct { //nolint:revive // names on the wire
	AllocationId, IpAddress, Name, Status      string
	Description                                string
	Descritpion                                string // the misspelled twin is really answered
	InstanceId, InstanceType, InstanceRegionId string
	PrivateIpAddress, Bandwidth                string
	InternetChargeType, ChargeType, RegionId   string
	ResourceGroupId, AllocationTime            string
	OperationLocks                             struct{ LockReason []struct{ LockReason string } }
	Tags                                       struct{ Tag []cloud.TagView }
}

func (v service) eipView(e *cloud.EIP, now time.Time) eipView {
	view := eipView{
		AllocationId: e.ID, IpAddress: e.Address, Name: e.Name, Status: e.Phase.At(now), Description: e.Description, Descritpion: e.Description,
		PrivateIpAddress: e.PrivateIP, Bandwidth: strconv.Itoa(e.Bandwidth), InternetChargeType: e.InternetChargeType,
		ChargeType: e.ChargeType, RegionId: v.Region, ResourceGroupId: e.ResourceGroupID, AllocationTime: cloud.Timestamp(e.Created),
	}
	if holder := e.Holder(now); holder != "" {
		view.InstanceId, view.InstanceType, view.InstanceRegionId = holder, e.InstanceType, v.Region
	}
	view.OperationLocks.LockReason = []struct{ LockReason string }{}
	view.Tags.Tag = e.Tags.Views()
	return view
}

func (v service) describeEIPs(c *api.Call) (any, error) {
	tags := cloud.TagsIn(c)
	all := v.EIPs.Select(func(e *cloud.EIP) bool {
		view := v.eipView(e, c.Now)
		return view.Status != "" && passes(c, []filter{
			{"AllocationId", e.ID}, {"EipAddress", e.Address}, {"EipName", e.Name}, {"Status", view.Status}, {"ChargeType", e.ChargeType},
			{"AssociatedInstanceType", view.InstanceType}, {"AssociatedInstanceId", view.InstanceId}, {"ResourceGroupId", e.ResourceGroupID},
		}) && c.Sees(e.Created) && e.Tags.Match(tags)
	})
	return api.NumberedList(c, all, defaultPage, "EipAddresses", "EipAddress", func(e *cloud.EIP) eipView { return v.eipView(e, c.Now) }), nil
}

func (v service) allocateEIP(c *api.Call) (any, error) {
	return v.Tokens.Once(c, mismatch(), func() (any, error) {
		e := &cloud.EIP{
			Object: v.NewObject("eip"), Name: c.Str("Name"), Description: c.Str("Description"), Address: v.NewPublicIP(false),
			Bandwidth: c.Int("Bandwidth", 5), InternetChargeType: c.Or("InternetChargeType", "PayByBandwidth"),
			ChargeType: c.Or("InstanceChargeType", "PostPaid"), ResourceGroupID: c.Or("ResourceGroupId", "rg-emulator"),
			Phase: cloud.Steady(cloud.Available),
		}
		v.EIPs.Add(e)
		return struct { //nolint:revive // names on the wire
			AllocationId, EipAddress, ResourceGroupId string
			OrderId                                   int64
		}{e.ID, e.Address, e.ResourceGroupID, 0}, nil
	})
}

// eip finds the address of a call and checks that it is in the wanted status.
func (v service) eip(c *api.Call, want string) (*cloud.EIP, error) {
	e, ok := v.EIPs.Get(c.Str("AllocationId"))
	if !ok || e.Phase.At(c.Now) == "" {
		return nil, api.NotFound("InvalidAllocationId.NotFound", "The specified address %s does not exist.", c.Str("AllocationId"))
	}
	if status := e.Phase.At(c.Now); status != want {
		return nil, api.BadRequest("IncorrectEipStatus", "The address %s is %s, not %s.", e.ID, status, want)
	}
	return e, nil
}

func (v service) associateEIP(c *api.Call) (any, error) {
	return v.Tokens.Once(c, mismatch(), func() (any, error) {
		e, err := v.eip(c, cloud.Available)
		if err != nil {
			return nil, err
		}
		kind, id := c.Or("InstanceType", toECS), c.Str("InstanceId")
		if bad := v.bindable(kind, id); bad != nil {
			return nil, bad
		}
		if _, bound := v.EIPOf(id, c.Now); bound {
			return nil, api.BadRequest("InvalidAssociation.Duplicated", "The instance %s has an address already.", id)
		}
		e.InstanceID, e.InstanceType, e.PrivateIP = id, kind, c.Str("PrivateIpAddress")
		end := cloud.InUse
		if !c.Holds("vpc.eip-states") {
			end = "Bound"
		}
		e.Phase = v.Begin(cloud.Associating, end, c.Now)
		return nil, nil //nolint:nilnil // an answer of the request id alone
	})
}

// bindable checks that an instance exists and can take an address.
func (v service) bindable(kind, id string) *api.Error {
	missing := api.BadRequest("InvalidInstanceId.NotFound", "The specified instance %s does not exist.", id)
	switch kind {
	case toECS:
		if _, ok := v.Instances.Get(id); !ok {
			return missing
		}
	case toENI:
		if _, ok := v.Interfaces.Get(id); !ok {
			return missing
		}
	case toSLB:
		lb, ok := v.LoadBalancers.Get(id)
		if !ok {
			return missing
		}
		if lb.AddressType == "internet" {
			return api.BadRequest("OperationDenied", "An internet load balancer takes no address.")
		}
	default:
		return api.BadRequest("InvalidInstanceType.ValueNotSupported", "The emulator has no instances of type %s.", kind)
	}
	return nil
}

func (v service) unassociateEIP(c *api.Call) (any, error) {
	return v.Tokens.Once(c, mismatch(), func() (any, error) {
		e, err := v.eip(c, cloud.InUse)
		if err != nil {
			return nil, err
		}
		if c.Has("InstanceId") && c.Str("InstanceId") != e.InstanceID {
			return nil, api.BadRequest("InvalidInstanceId.NotFound", "The address %s is not bound to %s.", e.ID, c.Str("InstanceId"))
		}
		e.Phase = v.Begin(cloud.Unassociating, cloud.Available, c.Now)
		return nil, nil //nolint:nilnil // an answer of the request id alone
	})
}

func (v service) releaseEIP(c *api.Call) (any, error) {
	e, err := v.eip(c, cloud.Available)
	if err != nil {
		return nil, err
	}
	if e.ChargeType == "PrePaid" {
		return nil, api.BadRequest("OperationDenied", "A subscription address cannot be released.")
	}
	v.BeginRelease(e, c.Now)
	return nil, nil //nolint:nilnil // an answer of the request id alone
}

func mismatch() *api.Error {
	return api.BadRequest("IdempotentParameterMismatch", "The ClientToken was used before with other parameters.")
}
