package alicloud

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// loadBalancerPageSize is the largest page of DescribeLoadBalancers.
const loadBalancerPageSize = 100

// maxLoadBalancerIDs is how many ids one DescribeLoadBalancers call takes.
const maxLoadBalancerIDs = 10

// Address types of a CLB.
const (
	AddressInternet = "internet"
	AddressIntranet = "intranet"
)

// Values of the two protections of a CLB.
const (
	ProtectionOn      = On
	ProtectionOff     = Off
	ConsoleProtection = "ConsoleProtection"
	NonProtection     = "NonProtection"
)

// IP versions of a CLB and of an access control list.
const (
	IPv4 = "ipv4"
	IPv6 = "ipv6"
)

// What a CLB is charged by: its specification or its use; its public traffic by volume or by bandwidth.
const (
	PayBySpec      = "PayBySpec"
	PayByCLCU      = "PayByCLCU"
	PayByTraffic   = "paybytraffic"
	PayByBandwidth = "paybybandwidth"
)

const (
	resourceTypeInstance = "instance"
	loadBalancerActive   = "active"
	loadBalancerInactive = "inactive"
	loadBalancerLocked   = "locked"
)

// LoadBalancer is a Classic Load Balancer (CLB) instance. In calls that write, an empty field is not sent.
type LoadBalancer struct {
	ID   string
	Name string
	// Status is "active", "inactive" (stopped by its owner) or "locked" (arrears).
	Status  string
	Address string
	// AddressType is [AddressInternet] or [AddressIntranet]; an intranet CLB needs VSwitchID.
	AddressType string
	// AddressIPVersion is [IPv4] or [IPv6].
	AddressIPVersion string
	// NetworkType is "vpc" or "classic". It is not sent: an intranet CLB without VSwitchID is in the classic network.
	NetworkType     string
	VPCID           string
	VSwitchID       string
	MasterZoneID    string
	SlaveZoneID     string
	ResourceGroupID string
	// InstanceChargeType is [PayBySpec] or [PayByCLCU].
	InstanceChargeType string
	// InternetChargeType is [PayByTraffic] or [PayByBandwidth], also where the API answers with a code.
	InternetChargeType string
	// Bandwidth in Mbit/s applies with [PayByBandwidth] only; 0 is not sent.
	Bandwidth int
	Spec      string
	// DeleteProtection is [ProtectionOn] or [ProtectionOff].
	DeleteProtection string
	// ModificationProtection is [ConsoleProtection] or [NonProtection].
	ModificationProtection       string
	ModificationProtectionReason string
	Tags                         []Tag
}

// Tag returns the value of the tag, and whether the CLB has it.
func (lb *LoadBalancer) Tag(key string) (string, bool) {
	for _, tag := range lb.Tags {
		if tag.Key == key {
			return tag.Value, true
		}
	}
	return "", false
}

// Locked reports whether the CLB takes no change and carries no traffic.
func (lb *LoadBalancer) Locked() bool { return lb.Status == loadBalancerLocked }

// Stopped reports whether somebody has stopped the CLB, so that it carries no traffic.
func (lb *LoadBalancer) Stopped() bool { return lb.Status == loadBalancerInactive }

// Active reports whether the CLB carries traffic.
func (lb *LoadBalancer) Active() bool { return lb.Status == loadBalancerActive }

// LoadBalancerQuery selects CLBs; all given conditions must hold.
type LoadBalancerQuery struct {
	IDs  []string // at most 10
	Name string
	// Address is the address of a CLB. Addresses of deleted ones are used again.
	Address string
	// Tag selects by one tag. Its value may be empty, then any value matches. Only one tag can be asked for: it is not
	// documented whether several combine with AND or with OR.
	Tag *Tag
}

// DescribeLoadBalancers returns the CLBs that match, tags included. Unknown ids are missing from the result.
func (c *Client) DescribeLoadBalancers(ctx context.Context, query LoadBalancerQuery) ([]LoadBalancer, error) {
	if len(query.IDs) > maxLoadBalancerIDs {
		return nil, fmt.Errorf("query of %d load balancers by id: the API takes at most %d", len(query.IDs), maxLoadBalancerIDs)
	}
	in := params{}.set("LoadBalancerId", strings.Join(query.IDs, ",")).set("LoadBalancerName", query.Name).
		set("Address", query.Address)
	if query.Tag != nil {
		in.setTags([]Tag{*query.Tag})
	}
	in.setInt("PageSize", loadBalancerPageSize)
	return pages("DescribeLoadBalancers", func(lb LoadBalancer) string { return lb.ID }, func(number int) (page[LoadBalancer], error) {
		out := &describeLoadBalancersResponse{answer: newAnswer()}
		if err := c.call(ctx, "DescribeLoadBalancers", productSLB, in.setInt("PageNumber", number), out); err != nil {
			return page[LoadBalancer]{}, err
		}
		var found []LoadBalancer
		for i := range out.LoadBalancers.LoadBalancer {
			lb := out.LoadBalancers.LoadBalancer[i].loadBalancer()
			if len(query.IDs) > 0 && !slices.Contains(query.IDs, lb.ID) {
				return page[LoadBalancer]{}, out.unusable("DescribeLoadBalancers", "asked for %q, got %q", query.IDs, lb.ID)
			}
			found = append(found, lb)
		}
		return page[LoadBalancer]{out.answer, found, out.TotalCount}, nil
	})
}

type describeLoadBalancersResponse struct {
	answer
	TotalCount    *int
	LoadBalancers struct{ LoadBalancer []wireLoadBalancer }
}

type describeLoadBalancerResponse struct {
	answer
	wireLoadBalancer
}

type wireLoadBalancer struct {
	LoadBalancerId, LoadBalancerName, LoadBalancerStatus                      string
	Address, AddressType, AddressIPVersion                                    string
	NetworkType, VpcId, VSwitchId, MasterZoneId, SlaveZoneId, ResourceGroupId string
	InstanceChargeType, InternetChargeType, InternetChargeTypeAlias           string
	LoadBalancerSpec, DeleteProtection, ModificationProtectionStatus          string
	ModificationProtectionReason                                              string
	Bandwidth                                                                 int
	Tags                                                                      struct {
		Tag []struct{ TagKey, TagValue string }
	}
}

func (w *wireLoadBalancer) loadBalancer() LoadBalancer {
	lb := LoadBalancer{
		ID: w.LoadBalancerId, Name: w.LoadBalancerName, Status: w.LoadBalancerStatus,
		Address: w.Address, AddressType: w.AddressType, AddressIPVersion: w.AddressIPVersion,
		NetworkType: w.NetworkType, VPCID: w.VpcId, VSwitchID: w.VSwitchId, MasterZoneID: w.MasterZoneId, SlaveZoneID: w.SlaveZoneId,
		ResourceGroupID: w.ResourceGroupId, InstanceChargeType: w.InstanceChargeType,
		InternetChargeType: w.InternetChargeType, Bandwidth: w.Bandwidth, Spec: w.LoadBalancerSpec,
		DeleteProtection: w.DeleteProtection, ModificationProtection: w.ModificationProtectionStatus,
		ModificationProtectionReason: w.ModificationProtectionReason,
	}
	// The list gives the readable charge type only as an alias and a code in the field itself.
	if w.InternetChargeTypeAlias != "" {
		lb.InternetChargeType = w.InternetChargeTypeAlias
	}
	for _, tag := range w.Tags.Tag {
		lb.Tags = append(lb.Tags, Tag{Key: tag.TagKey, Value: tag.TagValue})
	}
	return lb
}

// DescribeLoadBalancer returns one CLB with its tags, or an error for which [IsNotFound] holds.
func (c *Client) DescribeLoadBalancer(ctx context.Context, id string) (LoadBalancer, error) {
	out := &describeLoadBalancerResponse{answer: newAnswer()}
	if err := c.call(ctx, "DescribeLoadBalancerAttribute", productSLB, params{"LoadBalancerId": id}, out); err != nil {
		return LoadBalancer{}, err
	}
	// An empty id would be sent as no id at all; the answer then describes another CLB.
	if out.LoadBalancerId != id {
		return LoadBalancer{}, out.unusable("DescribeLoadBalancerAttribute", "asked for %q, got %q", id, out.LoadBalancerId)
	}
	return out.loadBalancer(), nil
}

// CreateLoadBalancer makes a CLB and returns its id and address with what was asked for. Repeating the call with the same
// token (at most 64 ASCII characters) and the same attributes returns the first one's result.
func (c *Client) CreateLoadBalancer(ctx context.Context, lb LoadBalancer, token string) (LoadBalancer, error) {
	in := params{"ClientToken": token}.
		set("LoadBalancerName", lb.Name).set("AddressType", lb.AddressType).set("AddressIPVersion", lb.AddressIPVersion).
		set("VpcId", lb.VPCID).set("VSwitchId", lb.VSwitchID).set("Address", lb.Address).
		set("MasterZoneId", lb.MasterZoneID).set("SlaveZoneId", lb.SlaveZoneID).set("ResourceGroupId", lb.ResourceGroupID).
		set("InstanceChargeType", lb.InstanceChargeType).set("InternetChargeType", lb.InternetChargeType).
		set("LoadBalancerSpec", lb.Spec).set("DeleteProtection", lb.DeleteProtection).
		set("ModificationProtectionStatus", lb.ModificationProtection).
		set("ModificationProtectionReason", lb.ModificationProtectionReason).
		setTags(lb.Tags)
	if lb.Bandwidth > 0 {
		in.setInt("Bandwidth", lb.Bandwidth)
	}
	out := &describeLoadBalancerResponse{answer: newAnswer()}
	if err := c.call(ctx, "CreateLoadBalancer", productSLB, in, out); err != nil {
		return LoadBalancer{}, err
	}
	created := lb
	created.ID, created.Address, created.Status = out.LoadBalancerId, out.Address, loadBalancerActive
	created.NetworkType, created.VPCID, created.VSwitchID = out.NetworkType, out.VpcId, out.VSwitchId
	if created.AddressIPVersion == "" {
		created.AddressIPVersion = IPv4
	}
	return created, nil
}

// DeleteLoadBalancer removes the CLB with its listeners, vServer groups and tags. Delete protection must be off.
func (c *Client) DeleteLoadBalancer(ctx context.Context, id string) error {
	return c.slbWrite(ctx, "DeleteLoadBalancer", params{"LoadBalancerId": id})
}

// SetDeleteProtection switches the delete protection to [ProtectionOn] or [ProtectionOff].
func (c *Client) SetDeleteProtection(ctx context.Context, id, value string) error {
	return c.slbWrite(ctx, "SetLoadBalancerDeleteProtection", params{"LoadBalancerId": id, "DeleteProtection": value})
}

// SetModificationProtection switches the protection against changes in the console; reason counts with
// [ConsoleProtection] only.
func (c *Client) SetModificationProtection(ctx context.Context, id, status, reason string) error {
	in := params{"LoadBalancerId": id, "ModificationProtectionStatus": status}
	if status == ConsoleProtection {
		in.set("ModificationProtectionReason", reason)
	}
	return c.slbWrite(ctx, "SetLoadBalancerModificationProtection", in)
}

// SetLoadBalancerName renames the CLB.
func (c *Client) SetLoadBalancerName(ctx context.Context, id, name string) error {
	return c.slbWrite(ctx, "SetLoadBalancerName", params{"LoadBalancerId": id, "LoadBalancerName": name})
}

// TagLoadBalancer adds tags to a CLB or replaces the values of those that it has.
func (c *Client) TagLoadBalancer(ctx context.Context, id string, tags []Tag) error {
	in := params{"ResourceType": resourceTypeInstance}.setList("ResourceId", []string{id}).setTags(tags)
	return c.slbWrite(ctx, "TagResources", in)
}

// UntagLoadBalancer removes tags from a CLB by key; keys that it lacks are ignored.
func (c *Client) UntagLoadBalancer(ctx context.Context, id string, keys []string) error {
	in := params{"ResourceType": resourceTypeInstance}.setList("ResourceId", []string{id}).setList("TagKey", keys)
	return c.slbWrite(ctx, "UntagResources", in)
}

// slbWrite runs an action whose answer holds nothing of interest.
func (c *Client) slbWrite(ctx context.Context, action string, in params) error {
	return c.call(ctx, action, productSLB, in, plainAnswer())
}
