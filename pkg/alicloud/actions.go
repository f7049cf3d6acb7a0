package alicloud

import (
	"context"
	"maps"
	"slices"

	"github.com/aliyun/alibaba-cloud-sdk-go/sdk/responses"
)

// Feature is a part of the project that calls the OpenAPI.
type Feature string

// The features, each with a RAM policy of its own.
const (
	// FeatureServices is CLBs for Services.
	FeatureServices Feature = "services"
	// FeatureNLB is NLBs for Services.
	FeatureNLB Feature = "nlb"
	// FeatureRoutes is routes for the nodes' pod CIDRs.
	FeatureRoutes Feature = "routes"
	// FeatureNodes is nodes, and finding the VPC at the start.
	FeatureNodes Feature = "nodes"
	// FeatureInitializer is provider-initor where it looks instances up by address.
	FeatureInitializer Feature = "initializer"
	// FeatureQuotas is reading the quotas of the account. Everything works without it.
	FeatureQuotas Feature = "quotas"
)

// Features are all of them in the order of the documentation.
var Features = []Feature{FeatureServices, FeatureNLB, FeatureRoutes, FeatureNodes, FeatureInitializer, FeatureQuotas}

// Action is one operation of the OpenAPI that this package calls.
type Action struct {
	// Product is the RAM name of the product: "slb", "nlb", "vpc", "ecs" or "quotas".
	Product string
	// Name is the action, for example "CreateLoadBalancer".
	Name string
	// Features need the action.
	Features []Feature
	// Why says what it is called for.
	Why string

	// probe are parameters with which the call has no effect, also where it is allowed: reads, dry runs, and writes to
	// resources whose ids cannot exist.
	probe params
}

// RAM is the action's name in a policy: https://www.alibabacloud.com/help/en/ram/user-guide/policy-elements.
func (a Action) RAM() string { return a.Product + ":" + a.Name }

// IsRead reports whether the action only reads.
func (a Action) IsRead() bool { return isRead(a.Name) }

// Ids that no resource has: real ones are longer and have no dash after the prefix.
const (
	noLoadBalancer = "lb-doctor-none"
	noServerGroup  = "rsp-doctor-none"
	noAccessList   = "acl-doctor-none"
	noExtension    = "de-doctor-none"
	noRouteTable   = "vtb-doctor-none"
	noVSwitch      = "vsw-doctor-none"
	noVPC          = "vpc-doctor-none"
	noInterface    = "eni-doctor-none"
	noInstance     = "i-doctor-none"
)

var (
	forServices = []Feature{FeatureServices}
	forRoutes   = []Feature{FeatureRoutes}
)

func onLoadBalancer(more ...string) params {
	p := params{"LoadBalancerId": noLoadBalancer}
	for i := 0; i < len(more); i += 2 {
		p[more[i]] = more[i+1]
	}
	return p
}

// Actions are all that this package calls with a key, by product and name. A test holds the package to it.
func Actions() []Action {
	return slices.Concat(slbActions(), nlbActions(), otherActions())
}

// ActionsOf are those that any of the features needs.
func ActionsOf(features ...Feature) []Action {
	return slices.DeleteFunc(Actions(), func(a Action) bool {
		return !slices.ContainsFunc(a.Features, func(f Feature) bool { return slices.Contains(features, f) })
	})
}

// IsOnlyFor reports whether no other feature needs the action.
func (a Action) IsOnlyFor(feature Feature) bool { return slices.Equal(a.Features, []Feature{feature}) }

// Policy is what a RAM policy has to allow for the feature, without the actions of the names given.
func (f Feature) Policy(without ...string) []string {
	var allowed []string
	for _, action := range ActionsOf(f) {
		if !slices.Contains(without, action.Name) {
			allowed = append(allowed, action.RAM())
		}
	}
	return allowed
}

func slbActions() []Action {
	listener := func(more ...string) params {
		return onLoadBalancer(append([]string{"ListenerPort", "1", "Bandwidth", "-1", "Scheduler", "wrr"}, more...)...)
	}
	web := []string{"StickySession", "off", "HealthCheck", "off"}
	tagged := params{"ResourceType": resourceTypeInstance, "ResourceId.1": noLoadBalancer}
	actions := []Action{
		{Name: "AddAccessControlListEntry", Why: "spec.loadBalancerSourceRanges",
			probe: params{"AclId": noAccessList, "AclEntrys": `[{"entry":"192.0.2.0/24"}]`}},
		{Name: "AddVServerGroupBackendServers", Why: "adding backend servers",
			probe: params{"VServerGroupId": noServerGroup, "BackendServers": "[]"}},
		// Three reasons to be refused, each of which is enough.
		{Name: "CreateAccessControlList", Why: "spec.loadBalancerSourceRanges",
			probe: params{"AclName": "", "AddressIPVersion": "none", "ResourceGroupId": "none"}},
		{Name: "CreateLoadBalancer", Why: "creating a load balancer for a Service",
			probe: params{"AddressType": "none", "VSwitchId": noVSwitch, "LoadBalancerSpec": "none"}},
		{Name: "CreateDomainExtension", Why: "annotation domain-extensions",
			probe: listener("Domain", "none.invalid", "ServerCertificateId", "none")},
		{Name: "CreateLoadBalancerHTTPListener", Why: "ports", probe: listener(web...)},
		{Name: "CreateLoadBalancerHTTPSListener", Why: "ports", probe: listener(append(web, "ServerCertificateId", "none")...)},
		{Name: "CreateLoadBalancerTCPListener", Why: "ports", probe: listener()},
		{Name: "CreateLoadBalancerUDPListener", Why: "ports", probe: listener()},
		{Name: "CreateVServerGroup", Why: "ports", probe: onLoadBalancer()},
		{Name: "DeleteAccessControlList", Why: "removed spec.loadBalancerSourceRanges", probe: params{"AclId": noAccessList}},
		{Name: "DeleteDomainExtension", Why: "annotation domain-extensions", probe: params{"DomainExtensionId": noExtension}},
		{Name: "DeleteLoadBalancer", Why: "deleting the load balancer of a Service", probe: onLoadBalancer()},
		{Name: "DeleteLoadBalancerListener", Why: "removed ports", probe: onLoadBalancer("ListenerPort", "1")},
		{Name: "DeleteVServerGroup", Why: "removed ports", probe: params{"VServerGroupId": noServerGroup}},
		{Name: "DescribeAccessControlListAttribute", Why: "reading the observed state", probe: params{"AclId": noAccessList}},
		{Name: "DescribeAccessControlLists", Why: "finding existing resources", probe: params{"PageSize": "1"}},
		{Name: "DescribeDomainExtensions", Why: "annotation domain-extensions", probe: onLoadBalancer("ListenerPort", "1")},
		{Name: "DescribeLoadBalancerAttribute", Why: "reading the observed state", probe: onLoadBalancer()},
		{Name: "DescribeLoadBalancerListeners", Why: "reading the observed state", probe: params{"LoadBalancerId.1": noLoadBalancer}},
		{Name: "DescribeLoadBalancers", Why: "finding existing resources", probe: params{"PageSize": "1"}},
		{Name: "DescribeServerCertificates", Why: "events for certificates that expire", probe: params{"ServerCertificateId": "none"}},
		{Name: "DescribeVServerGroupAttribute", Why: "reading the observed state", probe: params{"VServerGroupId": noServerGroup}},
		{Name: "DescribeVServerGroups", Why: "reading the observed state", probe: onLoadBalancer()},
		{Name: "ModifyLoadBalancerInstanceChargeType", Why: "annotation instance-charge-type",
			probe: onLoadBalancer("InstanceChargeType", "PayByCLCU")},
		{Name: "ModifyLoadBalancerInstanceSpec", Why: "annotation spec", probe: onLoadBalancer("LoadBalancerSpec", "slb.s1.small")},
		{Name: "ModifyLoadBalancerInternetSpec", Why: "annotations charge-type and bandwidth",
			probe: onLoadBalancer("InternetChargeType", "paybytraffic")},
		{Name: "ModifyVServerGroupBackendServers", Why: "replacing backend servers",
			probe: params{"VServerGroupId": noServerGroup, "OldBackendServers": "[]", "NewBackendServers": "[]"}},
		{Name: "RemoveAccessControlListEntry", Why: "spec.loadBalancerSourceRanges",
			probe: params{"AclId": noAccessList, "AclEntrys": `[{"entry":"192.0.2.0/24"}]`}},
		{Name: "RemoveVServerGroupBackendServers", Why: "removing backend servers",
			probe: params{"VServerGroupId": noServerGroup, "BackendServers": "[]"}},
		{Name: "SetDomainExtensionAttribute", Why: "annotation domain-extensions",
			probe: params{"DomainExtensionId": noExtension, "ServerCertificateId": "none"}},
		{Name: "SetLoadBalancerDeleteProtection", Why: "annotation delete-protection; deletion",
			probe: onLoadBalancer("DeleteProtection", "off")},
		{Name: "SetLoadBalancerHTTPListenerAttribute", Why: "changed ports and annotations", probe: listener(web...)},
		{Name: "SetLoadBalancerHTTPSListenerAttribute", Why: "changed ports and annotations",
			probe: listener(append(web, "ServerCertificateId", "none")...)},
		{Name: "SetLoadBalancerModificationProtection", Why: "annotation modification-protection",
			probe: onLoadBalancer("ModificationProtectionStatus", "NonProtection")},
		{Name: "SetLoadBalancerName", Why: "annotation name", probe: onLoadBalancer("LoadBalancerName", "none")},
		{Name: "SetLoadBalancerTCPListenerAttribute", Why: "changed ports and annotations", probe: listener()},
		{Name: "SetLoadBalancerUDPListenerAttribute", Why: "changed ports and annotations", probe: listener()},
		{Name: "SetVServerGroupAttribute", Why: "changing weights", probe: params{"VServerGroupId": noServerGroup, "BackendServers": "[]"}},
		{Name: "StartLoadBalancerListener", Why: "ports", probe: onLoadBalancer("ListenerPort", "1")},
		{Name: "TagResources", Why: "ownership tags; annotation additional-resource-tags",
			probe: params{"ResourceType": resourceTypeInstance, "ResourceId.1": noLoadBalancer, "Tag.1.Key": "none"}},
		{Name: "UntagResources", Why: "annotation additional-resource-tags", probe: tagged.set("TagKey.1", "none")},
	}
	for i := range actions {
		actions[i].Product, actions[i].Features = "slb", forServices
	}
	return actions
}

func otherActions() []Action {
	entry := params{
		"RouteEntries.1.RouteTableId": noRouteTable, "RouteEntries.1.DstCidrBlock": "192.0.2.0/24",
		"RouteEntries.1.NextHop": noInstance, "RouteEntries.1.NextHopType": "Instance",
	}
	return []Action{
		{
			Product: "ecs", Name: "DescribeInstances", Features: []Feature{FeatureNodes, FeatureRoutes, FeatureInitializer},
			Why: "reading the instances of nodes", probe: params{"DryRun": "true"},
		},
		{
			Product: "ecs", Name: "DescribeNetworkInterfaces", Features: []Feature{FeatureServices, FeatureNLB, FeatureRoutes},
			Why: "pods as backend servers; the source/destination check", probe: params{"NetworkInterfaceId.1": noInterface},
		},
		{
			Product: "ecs", Name: "ModifyNetworkInterfaceAttribute", Features: forRoutes,
			Why: "disabling the source/destination check", probe: params{"NetworkInterfaceId": noInterface, "SourceDestCheck": "false"},
		},
		{Product: "vpc", Name: "CreateRouteEntries", Features: forRoutes, Why: "creating routes of nodes", probe: entry},
		{Product: "vpc", Name: "DeleteRouteEntries", Features: forRoutes, Why: "deleting routes of removed nodes", probe: entry},
		{Product: "vpc", Name: "DescribeEipAddresses", Features: forServices, Why: "annotation external-ip-type",
			probe: params{"PageSize": "10"}},
		{Product: "vpc", Name: "DescribeRouteEntryList", Features: forRoutes, Why: "reading the observed state",
			probe: params{"RouteTableId": noRouteTable}},
		{Product: "vpc", Name: "DescribeRouteTableList", Features: forRoutes, Why: "finding the route tables", probe: params{"VpcId": noVPC}},
		{Product: "vpc", Name: "DescribeVpcs", Features: []Feature{FeatureServices, FeatureNLB},
			Why: "pods as backend servers: the CIDRs of the VPC", probe: params{"PageSize": "10"}},
		{
			Product: "vpc", Name: "DescribeVSwitches", Features: []Feature{FeatureServices, FeatureNLB, FeatureRoutes, FeatureNodes},
			Why: "checking access key, region and VPC at startup; the vSwitches of intranet CLBs and of NLBs without " +
				"`loadbalancer-zone-maps`", probe: params{"VpcId": noVPC},
		},
		{
			Product: "quotas", Name: "ListProductQuotas", Features: []Feature{FeatureQuotas},
			Why: "optional: reading the quotas of the account", probe: params{"ProductCode": QuotasOfCLB, "MaxResults": "1"},
		},
	}
}

// BeyondPolicy are reads that show that a key may do more than the features need: those of other features, and reads that nothing here
// calls and that common policies of the whole product include. ECS is not among them, as it hides what is not allowed.
func BeyondPolicy(features ...Feature) []Action {
	beyond := []Action{
		{Product: "vpc", Name: "DescribeVpcAttribute", probe: params{"VpcId": noVPC}},
		{Product: "slb", Name: "DescribeCACertificates"},
	}
	needed := ActionsOf(features...)
	for _, action := range ActionsOf(Features...) {
		if action.IsRead() && action.Product != "ecs" && !slices.ContainsFunc(needed, func(a Action) bool { return a.RAM() == action.RAM() }) {
			beyond = append(beyond, action)
		}
	}
	return beyond
}

// Permission is what a probe has shown.
type Permission string

const (
	// PermissionGranted says that the cloud answered a read, or a dry run that would have been carried out.
	PermissionGranted Permission = "granted"
	// PermissionDenied says that the cloud refused the caller.
	PermissionDenied Permission = "denied"
	// PermissionNotRefused says that the cloud refused the call for its harmless parameters, and not the caller. The documentation
	// does not say that it looks at the caller first.
	PermissionNotRefused Permission = "not refused"
	// PermissionUnknown says that the call failed for another reason.
	PermissionUnknown Permission = "unknown"
)

// Probe finds out whether the key may call an action, without an effect. The error is the reason for
// [PermissionDenied] and [PermissionUnknown].
func (c *Client) Probe(ctx context.Context, action Action) (Permission, error) {
	p := map[string]product{"slb": productSLB, "nlb": productNLB, "vpc": productVPC, "ecs": productECS,
		"quotas": productQuotas}[action.Product]
	in := params{"RegionId": c.opts.Region}
	maps.Copy(in, action.probe)
	err := c.call(ctx, action.Name, p, in, &responses.BaseResponse{})
	e, answered := asAPIError(err)
	switch {
	case err == nil, HasCode(err, "DryRunOperation"):
		return PermissionGranted, nil
	case IsForbidden(err):
		return PermissionDenied, err
	case !answered, IsAuth(err), IsThrottled(err), IsAmbiguous(err):
		return PermissionUnknown, err
	case action.IsRead() && (IsNotFound(err) || e.Status == 404):
		return PermissionGranted, nil
	default:
		return PermissionNotRefused, nil
	}
}
