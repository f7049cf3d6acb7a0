package alicloud

import (
	"context"
	"fmt"
	"slices"
)

// Address types of an NLB. Its IPv6 addresses have one of their own.
const (
	NLBInternet = "Internet"
	NLBIntranet = "Intranet"
)

// IP versions of an NLB and of a server group.
const (
	NLBIPv4      = "ipv4"
	NLBDualStack = "DualStack"
)

// Statuses of an NLB:
// https://www.alibabacloud.com/help/en/slb/network-load-balancer/developer-reference/api-nlb-2022-04-30-getloadbalancerattribute.
const (
	NLBProvisioning = "Provisioning"
	NLBActive       = "Active"
	NLBConfiguring  = "Configuring"
	NLBInactive     = "Inactive"
	NLBDeleting     = "Deleting"
	NLBCreateFailed = "CreateFailed"
)

const (
	// nlbPageSize is the largest page of the lists of NLBs, listeners, server groups and backend servers.
	nlbPageSize = 100
	// MaxNLBQuery is how many ids or names one list of NLB takes.
	MaxNLBQuery = 20
)

// NLB is a Network Load Balancer.
type NLB struct {
	ID      string
	Name    string
	DNSName string
	// Status is for example [NLBActive]. Every other status refuses writes.
	Status string
	// Locks are the reasons for which the load balancer is locked, for example "FinancialLocked".
	Locks           []string
	VPCID           string
	ResourceGroupID string
	// AddressType and IPv6AddressType are [NLBInternet] or [NLBIntranet].
	AddressType     string
	IPv6AddressType string
	// AddressIPVersion is [NLBIPv4] or [NLBDualStack].
	AddressIPVersion   string
	Zones              []NLBZone
	SecurityGroups     []string
	BandwidthPackageID string
	CrossZone          bool
	DeletionProtection bool
	// ModificationProtection is [ConsoleProtection] or [NonProtection].
	ModificationProtection       string
	ModificationProtectionReason string
	Tags                         []Tag
}

// NLBZone is where an NLB answers in one zone. In calls that write, an empty field is not sent.
type NLBZone struct {
	ZoneID      string
	VSwitchID   string
	PrivateIPv4 string
	// AllocationID is the id of the elastic IP address, PublicIPv4 the address.
	AllocationID string
	PublicIPv4   string
	IPv6         string
}

// Tag returns the value of the tag, and whether the NLB has it.
func (lb *NLB) Tag(key string) (string, bool) { return tagIn(lb.Tags, key) }

func tagIn(tags []Tag, key string) (string, bool) {
	at := slices.IndexFunc(tags, func(t Tag) bool { return t.Key == key })
	if at < 0 {
		return "", false
	}
	return tags[at].Value, true
}

// NLBQuery selects NLBs.
type NLBQuery struct {
	IDs   []string // at most [MaxNLBQuery]
	Names []string // at most [MaxNLBQuery]
	// Tag selects by one tag: a search by several finds what has any of them.
	Tag *Tag
}

// ListNLBs returns the NLBs that match, tags included. Unknown ids are missing from the result.
func (c *Client) ListNLBs(ctx context.Context, query NLBQuery) ([]NLB, error) {
	if max(len(query.IDs), len(query.Names)) > MaxNLBQuery {
		return nil, fmt.Errorf("query of %d load balancers by id and %d by name: the API takes at most %d", len(query.IDs), len(query.Names),
			MaxNLBQuery)
	}
	in := params{}.setInt("MaxResults", nlbPageSize).setList("LoadBalancerIds", query.IDs).setList("LoadBalancerNames", query.Names)
	if query.Tag != nil {
		in.setTags([]Tag{*query.Tag})
	}
	found, err := tokenPages("ListLoadBalancers", in, func(lb wireNLB) string {
		return lb.LoadBalancerId
	}, func() (tokenPage[wireNLB], error) {
		out := &struct {
			answer
			tokens
			LoadBalancers []wireNLB
		}{answer: newAnswer()}
		err := c.call(ctx, "ListLoadBalancers", productNLB, in, out)
		return tokenPage[wireNLB]{out.answer, out.tokens, out.LoadBalancers}, err
	})
	if err != nil {
		return nil, err
	}
	nlbs := make([]NLB, 0, len(found))
	for i := range found {
		nlbs = append(nlbs, found[i].nlb())
	}
	return nlbs, notAmong("ListLoadBalancers", query.IDs, nlbs, func(lb NLB) string { return lb.ID })
}

// GetNLB returns one NLB with its tags, or an error for which [IsNotFound] holds.
func (c *Client) GetNLB(ctx context.Context, id string) (NLB, error) {
	out := &struct {
		answer
		wireNLB
	}{answer: newAnswer()}
	if err := c.call(ctx, "GetLoadBalancerAttribute", productNLB, params{"LoadBalancerId": id}, out); err != nil {
		return NLB{}, err
	}
	if out.LoadBalancerId != id {
		return NLB{}, out.unusable("GetLoadBalancerAttribute", "asked for %q, got %q", id, out.LoadBalancerId)
	}
	return out.nlb(), nil
}

type wireNLB struct {
	LoadBalancerId, LoadBalancerName, LoadBalancerStatus, DNSName string
	VpcId, ResourceGroupId, AddressType, Ipv6AddressType          string
	AddressIpVersion, BandwidthPackageId                          string
	SecurityGroupIds                                              []string
	CrossZoneEnabled                                              *bool
	ZoneMappings                                                  []wireNLBZone
	DeletionProtectionConfig                                      struct{ Enabled bool }
	ModificationProtectionConfig                                  struct{ Status, Reason string }
	OperationLocks                                                []struct{ LockReason string }
	Tags                                                          []wireNLBTag
}

type wireNLBZone struct {
	ZoneId, VSwitchId     string
	LoadBalancerAddresses []struct{ PrivateIPv4Address, PublicIPv4Address, AllocationId, Ipv6Address string }
}

// wireNLBTag has both spellings of the API: TagKey in the answer about one load balancer, Key in lists.
type wireNLBTag struct{ Key, Value, TagKey, TagValue string }

func tagsOfNLB(wire []wireNLBTag) []Tag {
	var tags []Tag
	for _, t := range wire {
		tags = append(tags, Tag{Key: t.Key + t.TagKey, Value: t.Value + t.TagValue})
	}
	return tags
}

func (w *wireNLB) nlb() NLB {
	lb := NLB{
		ID: w.LoadBalancerId, Name: w.LoadBalancerName, DNSName: w.DNSName, Status: w.LoadBalancerStatus, VPCID: w.VpcId,
		ResourceGroupID: w.ResourceGroupId, AddressType: w.AddressType, IPv6AddressType: w.Ipv6AddressType,
		AddressIPVersion: w.AddressIpVersion, SecurityGroups: w.SecurityGroupIds, BandwidthPackageID: w.BandwidthPackageId,
		CrossZone:          w.CrossZoneEnabled == nil || *w.CrossZoneEnabled, // on is the default of an instance that does not say
		DeletionProtection: w.DeletionProtectionConfig.Enabled, ModificationProtection: w.ModificationProtectionConfig.Status,
		ModificationProtectionReason: w.ModificationProtectionConfig.Reason, Tags: tagsOfNLB(w.Tags),
	}
	for _, lock := range w.OperationLocks {
		lb.Locks = append(lb.Locks, lock.LockReason)
	}
	for _, z := range w.ZoneMappings {
		zone := NLBZone{ZoneID: z.ZoneId, VSwitchID: z.VSwitchId}
		for _, a := range z.LoadBalancerAddresses {
			zone.PrivateIPv4, zone.PublicIPv4, zone.AllocationID, zone.IPv6 = a.PrivateIPv4Address, a.PublicIPv4Address, a.AllocationId, a.Ipv6Address
		}
		lb.Zones = append(lb.Zones, zone)
	}
	return lb
}

// CreateNLB begins to make an NLB and returns its id; it takes no writes until it is [NLBActive]. Repeating the call with the same
// token (at most 64 ASCII characters) and the same attributes returns the first one's result.
func (c *Client) CreateNLB(ctx context.Context, lb NLB, token string) (id string, err error) {
	in := params{"ClientToken": token}.set("LoadBalancerName", lb.Name).set("VpcId", lb.VPCID).set("AddressType", lb.AddressType).
		set("AddressIpVersion", lb.AddressIPVersion).set("ResourceGroupId", lb.ResourceGroupID).set("BandwidthPackageId", lb.BandwidthPackageID).
		setList("SecurityGroupIds", lb.SecurityGroups).setZones(lb.Zones).setTags(lb.Tags).
		setBool("DeletionProtectionConfig.Enabled", &lb.DeletionProtection).
		set("ModificationProtectionConfig.Status", lb.ModificationProtection)
	if lb.ModificationProtection == ConsoleProtection {
		in.set("ModificationProtectionConfig.Reason", lb.ModificationProtectionReason)
	}
	out := &struct {
		answer
		LoadbalancerId string
	}{answer: newAnswer()}
	if err := c.call(ctx, "CreateLoadBalancer", productNLB, in, out); err != nil {
		return "", err
	}
	if out.LoadbalancerId == "" {
		return "", out.unusable("CreateLoadBalancer", "the answer has no LoadbalancerId")
	}
	return out.LoadbalancerId, nil
}

// DeleteNLB begins to remove the NLB with its listeners. Deletion protection must be off. Server groups stay.
func (c *Client) DeleteNLB(ctx context.Context, id string) (Job, error) {
	return c.nlbJobWrite(ctx, "DeleteLoadBalancer", params{"LoadBalancerId": id})
}

// NLBAttributes are settings of an NLB that one call changes; nil leaves a setting as it is.
type NLBAttributes struct {
	Name      *string
	CrossZone *bool
}

// UpdateNLB begins to change settings of an NLB.
func (c *Client) UpdateNLB(ctx context.Context, id string, attributes NLBAttributes) (Job, error) {
	in := params{"LoadBalancerId": id}.setText("LoadBalancerName", attributes.Name).setBool("CrossZoneEnabled", attributes.CrossZone)
	return c.nlbJobWrite(ctx, "UpdateLoadBalancerAttribute", in)
}

// NLBProtection are the protections of an NLB; nil leaves one as it is.
type NLBProtection struct {
	Deletion *bool
	// Modification is [ConsoleProtection] or [NonProtection]; Reason counts with the former only.
	Modification *string
	Reason       string
}

// ProtectNLB changes the protections of an NLB at once.
func (c *Client) ProtectNLB(ctx context.Context, id string, protection NLBProtection) error {
	in := params{"LoadBalancerId": id}.setBool("DeletionProtectionEnabled", protection.Deletion).setText("ModificationProtectionStatus",
		protection.Modification)
	if protection.Modification != nil && *protection.Modification == ConsoleProtection {
		in.set("ModificationProtectionReason", protection.Reason)
	}
	return c.nlbWrite(ctx, "UpdateLoadBalancerProtection", in)
}

// SetNLBAddressType begins to change how an NLB is reached; the zones name the elastic IP addresses for [NLBInternet].
func (c *Client) SetNLBAddressType(ctx context.Context, id, addressType string, zones []NLBZone) (Job, error) {
	in := params{"LoadBalancerId": id, "AddressType": addressType}.setZones(zones)
	return c.nlbJobWrite(ctx, "UpdateLoadBalancerAddressTypeConfig", in)
}

// SetNLBZones begins to change the zones of an NLB to exactly these.
func (c *Client) SetNLBZones(ctx context.Context, id string, zones []NLBZone) (Job, error) {
	return c.nlbJobWrite(ctx, "UpdateLoadBalancerZones", params{"LoadBalancerId": id}.setZones(zones))
}

// SetNLBIPv6AddressType opens the IPv6 addresses of an NLB to the internet, or closes them.
func (c *Client) SetNLBIPv6AddressType(ctx context.Context, id, addressType string) error {
	if addressType == NLBInternet {
		return c.nlbWrite(ctx, "EnableLoadBalancerIpv6Internet", params{"LoadBalancerId": id})
	}
	return c.nlbWrite(ctx, "DisableLoadBalancerIpv6Internet", params{"LoadBalancerId": id})
}

// JoinSecurityGroups begins to add an NLB to security groups.
func (c *Client) JoinSecurityGroups(ctx context.Context, id string, groups []string) (Job, error) {
	return c.nlbJobWrite(ctx, "LoadBalancerJoinSecurityGroup", params{"LoadBalancerId": id}.setList("SecurityGroupIds", groups))
}

// LeaveSecurityGroups begins to take an NLB out of security groups.
func (c *Client) LeaveSecurityGroups(ctx context.Context, id string, groups []string) (Job, error) {
	return c.nlbJobWrite(ctx, "LoadBalancerLeaveSecurityGroup", params{"LoadBalancerId": id}.setList("SecurityGroupIds", groups))
}

// AttachBandwidthPackage begins to add an internet-facing NLB to a bandwidth package.
func (c *Client) AttachBandwidthPackage(ctx context.Context, id, pack string) (Job, error) {
	return c.nlbJobWrite(ctx, "AttachCommonBandwidthPackageToLoadBalancer", params{"LoadBalancerId": id, "BandwidthPackageId": pack})
}

// DetachBandwidthPackage begins to take an NLB out of a bandwidth package.
func (c *Client) DetachBandwidthPackage(ctx context.Context, id, pack string) (Job, error) {
	return c.nlbJobWrite(ctx, "DetachCommonBandwidthPackageFromLoadBalancer", params{"LoadBalancerId": id, "BandwidthPackageId": pack})
}

func (p params) setZones(zones []NLBZone) params {
	for i, zone := range zones {
		at := fmt.Sprintf("ZoneMappings.%d.", i+1)
		p.set(at+"ZoneId", zone.ZoneID).set(at+"VSwitchId", zone.VSwitchID).set(at+"PrivateIPv4Address", zone.PrivateIPv4).
			set(at+"AllocationId", zone.AllocationID)
	}
	return p
}
