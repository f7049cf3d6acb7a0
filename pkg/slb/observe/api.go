package observe

import (
	"context"
	"net/netip"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// Reader is the part of the cloud that observing calls. It writes nothing.
type Reader interface {
	DescribeLoadBalancers(ctx context.Context, query alicloud.LoadBalancerQuery) ([]alicloud.LoadBalancer, error)
	DescribeLoadBalancer(ctx context.Context, id string) (alicloud.LoadBalancer, error)
	DescribeListeners(ctx context.Context, loadBalancerIDs ...string) (map[string][]alicloud.Listener, error)
	DescribeVServerGroups(ctx context.Context, loadBalancerID string) ([]alicloud.VServerGroup, error)
	DescribeVServerGroup(ctx context.Context, id string) (alicloud.VServerGroup, error)
	DescribeAccessLists(ctx context.Context, tag alicloud.Tag) ([]alicloud.AccessList, error)
	DescribeAccessList(ctx context.Context, id string) (alicloud.AccessList, error)
	DescribeServerCertificate(ctx context.Context, id string) (alicloud.Certificate, bool, error)
	DescribeDomainExtensions(ctx context.Context, loadBalancerID string, port int) ([]alicloud.DomainExtension, error)
	DescribeVPCBlocks(ctx context.Context, vpcID string) ([]netip.Prefix, error)
	DescribeEIPs(ctx context.Context, kind, id string) ([]alicloud.EIP, error)
	DescribeNetworkInterfaces(ctx context.Context, query alicloud.NetworkInterfaceQuery) ([]alicloud.NetworkInterface, error)
}
