package alicloud

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// MaxInstancesPerCall is how many ids or addresses one ECS query takes, and its largest page.
// Source: https://www.alibabacloud.com/help/en/ecs/developer-reference/api-ecs-2014-05-26-describeinstances.
const MaxInstancesPerCall = 100

// Instance states. A released instance is absent from every answer.
const (
	InstancePending  = "Pending"
	InstanceStarting = "Starting"
	InstanceRunning  = "Running"
	InstanceStopping = "Stopping"
	InstanceStopped  = "Stopped"
)

// Instance is an ECS instance.
type Instance struct {
	ID       string
	Name     string
	HostName string
	Type     string
	RegionID string
	ZoneID   string
	VPCID    string
	// VSwitchID is the vSwitch of the primary network interface.
	VSwitchID  string
	Status     string
	ChargeType string
	// SpotStrategy is "NoSpot" for instances that are not spot instances.
	SpotStrategy string
	// PrivateIPs are the private IPv4 addresses of the primary network interface, the primary one first.
	PrivateIPs []string
	// PublicIPs are public addresses that are not elastic ones; EIP is the elastic one. NAT addresses are in neither.
	PublicIPs []string
	EIP       string
	IPv6      []string
	// InterfaceIPs are all IPv4 and IPv6 addresses of all attached network interfaces. Some network plugins give them to pods.
	InterfaceIPs []string
	// PrimaryInterfaceID is the id of the primary network interface.
	PrimaryInterfaceID string
	Tags               map[string]string
}

// networkTypeVPC is the network type of instances in a VPC.
const networkTypeVPC = "vpc"

// InstanceQuery selects instances; all given conditions must hold.
type InstanceQuery struct {
	// IDs or PrivateIPs may be of any number; they are asked for in chunks of [MaxInstancesPerCall]. At most one of the
	// two may be given. With neither, all instances that match the rest are listed.
	IDs        []string
	PrivateIPs []string
	VPCID      string
	// FirstPage lists at most [MaxInstancesPerCall] instances, in one call. It is for callers that want to know whether the key
	// sees any instance at all, and has an effect only without IDs and PrivateIPs.
	FirstPage bool
}

// DescribeInstances returns the instances that match. An instance that does not exist is missing from the result: the
// action has no "not found".
//
// An access key without permission gets an empty list and no error (documented behavior of the action), so an empty
// result alone never proves that an instance is gone.
func (c *Client) DescribeInstances(ctx context.Context, query InstanceQuery) ([]Instance, error) {
	filter, values := "InstanceIds", query.IDs
	if len(query.PrivateIPs) > 0 {
		filter, values = "PrivateIpAddresses", query.PrivateIPs
	}
	if len(values) == 0 {
		return c.listInstances(ctx, params{}.set("VpcId", query.VPCID), query.FirstPage)
	}
	var all []Instance
	for chunk := range slices.Chunk(values, MaxInstancesPerCall) {
		in := params{}.set("VpcId", query.VPCID).setJSON(filter, chunk)
		var asked []string
		if len(query.PrivateIPs) > 0 {
			in["InstanceNetworkType"] = networkTypeVPC // without it the filter by address is documented to have no effect
		} else {
			asked = chunk
		}
		part, err := c.describeInstances(ctx, in, asked)
		if err != nil {
			return nil, err
		}
		all = append(all, part...)
	}
	return all, nil
}

// describeInstances reads at most [MaxInstancesPerCall] instances. It reads by page number, whose TotalCount counts: half a list would
// otherwise pass for all of it. Where instances were asked for by id, another one is an error.
// Source: https://www.alibabacloud.com/help/en/ecs/developer-reference/api-ecs-2014-05-26-describeinstances.
func (c *Client) describeInstances(ctx context.Context, in params, asked []string) ([]Instance, error) {
	return pages("DescribeInstances", func(i Instance) string { return i.ID }, func(number int) (page[Instance], error) {
		in.setInt("PageNumber", number).setInt("PageSize", MaxInstancesPerCall)
		out := &describeInstancesResponse{answer: newAnswer()}
		if err := c.call(ctx, "DescribeInstances", productECS, in, out); err != nil {
			return page[Instance]{}, err
		}
		if out.Instances == nil {
			return withoutList[Instance](out.answer, "DescribeInstances", out.TotalCount)
		}
		found := out.instances()
		for _, instance := range found {
			// Whether ECS tells upper from lower case is not documented. An id in another case is not the one asked for, and spoils no call.
			if asked != nil && !slices.ContainsFunc(asked, func(id string) bool { return strings.EqualFold(id, instance.ID) }) {
				return page[Instance]{}, out.unusable("DescribeInstances", "asked for %d instances by id, got %q", len(asked), instance.ID)
			}
		}
		return page[Instance]{out.answer, found, out.TotalCount}, nil
	})
}

// listInstances reads the first page or all. It reads by token, as the source advises for long lists; TotalCount is invalid there.
func (c *Client) listInstances(ctx context.Context, in params, firstPage bool) ([]Instance, error) {
	in.setInt("MaxResults", MaxInstancesPerCall)
	var all []Instance
	for number := 1; ; number++ {
		out := &describeInstancesResponse{answer: newAnswer()}
		if err := c.call(ctx, "DescribeInstances", productECS, in, out); err != nil {
			return nil, err
		}
		if out.Instances == nil {
			return nil, out.unusable("DescribeInstances", noList)
		}
		all = append(all, out.instances()...)
		more, err := in.nextPage(out.answer, "DescribeInstances", out.NextToken, number)
		if err != nil {
			return nil, err
		}
		if !more || firstPage {
			return all, nil
		}
	}
}

type describeInstancesResponse struct {
	answer
	TotalCount *int
	NextToken  string
	Instances  *struct{ Instance []wireInstance }
}

func (r *describeInstancesResponse) instances() []Instance {
	all := make([]Instance, len(r.Instances.Instance))
	for i := range r.Instances.Instance {
		all[i] = r.Instances.Instance[i].instance()
	}
	return all
}

type ipList struct{ IpAddress []string }

type wireInstance struct {
	InstanceId, InstanceName, HostName, InstanceType, RegionId, ZoneId string
	Status, InstanceChargeType, SpotStrategy                           string
	VpcAttributes                                                      struct {
		VpcId, VSwitchId string
		PrivateIpAddress ipList
	}
	PublicIpAddress   ipList
	EipAddress        struct{ IpAddress string }
	NetworkInterfaces struct{ NetworkInterface []wireInterfaceOfInstance }
	Tags              struct {
		Tag []struct{ TagKey, TagValue string }
	}
}

type wireInterfaceOfInstance struct {
	NetworkInterfaceId, Type string
	PrivateIpSets            struct {
		PrivateIpSet []struct {
			PrivateIpAddress string
			Primary          bool
		}
	}
	Ipv6Sets struct {
		Ipv6Set []struct{ Ipv6Address string }
	}
}

func (w *wireInstance) instance() Instance {
	instance := Instance{
		ID: w.InstanceId, Name: w.InstanceName, HostName: w.HostName, Type: w.InstanceType,
		RegionID: w.RegionId, ZoneID: w.ZoneId, VPCID: w.VpcAttributes.VpcId, VSwitchID: w.VpcAttributes.VSwitchId,
		Status: w.Status, ChargeType: w.InstanceChargeType, SpotStrategy: w.SpotStrategy,
		PrivateIPs: w.VpcAttributes.PrivateIpAddress.IpAddress, PublicIPs: w.PublicIpAddress.IpAddress,
		EIP: w.EipAddress.IpAddress, Tags: make(map[string]string, len(w.Tags.Tag)),
	}
	for _, tag := range w.Tags.Tag {
		instance.Tags[tag.TagKey] = tag.TagValue
	}
	for i := range w.NetworkInterfaces.NetworkInterface {
		w.NetworkInterfaces.NetworkInterface[i].addTo(&instance)
	}
	return instance
}

func (w *wireInterfaceOfInstance) addTo(instance *Instance) {
	var ipv6 []string
	for _, set := range w.Ipv6Sets.Ipv6Set {
		ipv6 = append(ipv6, set.Ipv6Address)
	}
	if w.Type == "Primary" {
		instance.PrimaryInterfaceID, instance.IPv6 = w.NetworkInterfaceId, ipv6
	}
	for _, set := range w.PrivateIpSets.PrivateIpSet {
		instance.InterfaceIPs = append(instance.InterfaceIPs, set.PrivateIpAddress)
	}
	instance.InterfaceIPs = append(instance.InterfaceIPs, ipv6...)
}

// NetworkInterface is an elastic network interface (ENI).
type NetworkInterface struct {
	ID         string
	InstanceID string
	VPCID      string
	PrivateIPs []string
	IPv6s      []string
	// PrimaryIP is the first of PrivateIPs, which it keeps; IsPrimary says that the interface came with its instance, so that this is the
	// address of the machine.
	PrimaryIP string
	IsPrimary bool
	// SourceDestCheck says whether the VPC drops packets whose source or destination is not an address of the
	// interface. It must be off on machines that carry routed pod addresses.
	SourceDestCheck bool
}

// NetworkInterfaceQuery selects network interfaces by id, by private IPv4 or by IPv6 address, in chunks of
// [MaxInstancesPerCall]. At most one of the three may be given.
type NetworkInterfaceQuery struct {
	IDs        []string
	PrivateIPs []string
	IPv6s      []string
	VPCID      string
}

func (q NetworkInterfaceQuery) filter() (name string, values []string) {
	switch {
	case len(q.PrivateIPs) > 0:
		return "PrivateIpAddress", q.PrivateIPs
	case len(q.IPv6s) > 0:
		return "Ipv6Address", q.IPv6s
	}
	return "NetworkInterfaceId", q.IDs
}

// DescribeNetworkInterfaces returns the interfaces that match; unknown ids and addresses are missing from the result.
// A query without ids and addresses selects nothing.
func (c *Client) DescribeNetworkInterfaces(ctx context.Context, query NetworkInterfaceQuery) ([]NetworkInterface, error) {
	filter, values := query.filter()
	var all []NetworkInterface
	for chunk := range slices.Chunk(values, MaxInstancesPerCall) {
		in := params{}.set("VpcId", query.VPCID).setList(filter, chunk)
		part, err := pages("DescribeNetworkInterfaces", func(eni NetworkInterface) string {
			return eni.ID
		}, func(number int) (page[NetworkInterface], error) {
			in.setInt("PageNumber", number).setInt("PageSize", MaxInstancesPerCall)
			out := &describeInterfacesResponse{answer: newAnswer()}
			if err := c.call(ctx, "DescribeNetworkInterfaces", productECS, in, out); err != nil {
				return page[NetworkInterface]{}, err
			}
			if out.NetworkInterfaceSets == nil {
				return withoutList[NetworkInterface](out.answer, "DescribeNetworkInterfaces", out.TotalCount)
			}
			var found []NetworkInterface
			for i := range out.NetworkInterfaceSets.NetworkInterfaceSet {
				found = append(found, out.NetworkInterfaceSets.NetworkInterfaceSet[i].networkInterface())
			}
			return page[NetworkInterface]{out.answer, found, out.TotalCount}, nil
		})
		if err != nil {
			return nil, err
		}
		all = append(all, part...)
	}
	return all, nil
}

type describeInterfacesResponse struct {
	answer
	TotalCount           *int
	NetworkInterfaceSets *struct{ NetworkInterfaceSet []wireInterface }
}

type wireInterface struct {
	NetworkInterfaceId, InstanceId, VpcId string
	Type                                  string
	SourceDestCheck                       bool
	PrivateIpSets                         struct {
		PrivateIpSet []struct {
			PrivateIpAddress string
			Primary          bool
		}
	}
	Ipv6Sets struct {
		Ipv6Set []struct{ Ipv6Address string }
	}
}

func (w *wireInterface) networkInterface() NetworkInterface {
	eni := NetworkInterface{ID: w.NetworkInterfaceId, InstanceID: w.InstanceId, VPCID: w.VpcId, SourceDestCheck: w.SourceDestCheck}
	eni.IsPrimary = w.Type == "Primary"
	for _, set := range w.PrivateIpSets.PrivateIpSet {
		if eni.PrivateIPs = append(eni.PrivateIPs, set.PrivateIpAddress); set.Primary {
			eni.PrimaryIP = set.PrivateIpAddress
		}
	}
	for _, set := range w.Ipv6Sets.Ipv6Set {
		eni.IPv6s = append(eni.IPv6s, set.Ipv6Address)
	}
	return eni
}

// DisableSourceDestCheck lets the interface send and receive packets of addresses that are not its own, which pod
// addresses are. Repeating it is harmless.
func (c *Client) DisableSourceDestCheck(ctx context.Context, interfaceID string) error {
	in := params{"NetworkInterfaceId": interfaceID, "SourceDestCheck": "false"}
	if err := c.call(ctx, "ModifyNetworkInterfaceAttribute", productECS, in, plainAnswer()); err != nil {
		return fmt.Errorf("switch off the source/destination check of %s: %w", interfaceID, err)
	}
	return nil
}
