package slb

import (
	"context"
	"net/netip"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// API is the part of the cloud that this package calls; *alicloud.Client has it.
type API interface {
	reader
	writer
}

var _ API = (*alicloud.Client)(nil)

// reader is what observing uses.
type reader interface {
	DescribeLoadBalancers(ctx context.Context, query alicloud.LoadBalancerQuery) ([]alicloud.LoadBalancer, error)
	DescribeLoadBalancer(ctx context.Context, id string) (alicloud.LoadBalancer, error)
	DescribeListeners(ctx context.Context, loadBalancerIDs ...string) (map[string][]alicloud.Listener, error)
	DescribeVServerGroups(ctx context.Context, loadBalancerID string) ([]alicloud.VServerGroup, error)
	DescribeVServerGroup(ctx context.Context, id string) (alicloud.VServerGroup, error)
	DescribeAccessLists(ctx context.Context, tag alicloud.Tag) ([]alicloud.AccessList, error)
	DescribeAccessListEntries(ctx context.Context, id string) ([]string, error)
	DescribeServerCertificate(ctx context.Context, id string) (alicloud.Certificate, bool, error)
	DescribeDomainExtensions(ctx context.Context, loadBalancerID string, port int) ([]alicloud.DomainExtension, error)
	DescribeVPCBlocks(ctx context.Context, vpcID string) ([]netip.Prefix, error)
	DescribeEIPs(ctx context.Context, kind, id string) ([]alicloud.EIP, error)
	DescribeNetworkInterfaces(ctx context.Context, query alicloud.NetworkInterfaceQuery) ([]alicloud.NetworkInterface, error)
}

// writer is what applying a plan uses.
type writer interface {
	CreateLoadBalancer(ctx context.Context, lb alicloud.LoadBalancer, token string) (alicloud.LoadBalancer, error)
	DeleteLoadBalancer(ctx context.Context, id string) error
	SetDeleteProtection(ctx context.Context, id, value string) error
	SetModificationProtection(ctx context.Context, id, status, reason string) error
	SetInternetSpec(ctx context.Context, id, chargeType string, bandwidth int) error
	SetInstanceChargeType(ctx context.Context, id, chargeType string) error
	SetInstanceSpec(ctx context.Context, id, spec string) error
	SetLoadBalancerName(ctx context.Context, id, name string) error
	TagLoadBalancer(ctx context.Context, id string, tags []alicloud.Tag) error
	UntagLoadBalancer(ctx context.Context, id string, keys []string) error

	CreateListener(ctx context.Context, loadBalancerID string, listener alicloud.Listener) error
	SetListener(ctx context.Context, loadBalancerID string, listener alicloud.Listener) error
	StartListener(ctx context.Context, loadBalancerID string, key alicloud.ListenerKey) error
	DeleteListener(ctx context.Context, loadBalancerID string, key alicloud.ListenerKey) error

	CreateDomainExtension(ctx context.Context, loadBalancerID string, port int, extension alicloud.DomainExtension) (string, error)
	SetDomainExtension(ctx context.Context, id, certificateID string) error
	DeleteDomainExtension(ctx context.Context, id string) error

	CreateAccessList(ctx context.Context, list alicloud.AccessList) (string, error)
	AddAccessListEntries(ctx context.Context, id string, entries []string) error
	RemoveAccessListEntries(ctx context.Context, id string, entries []string) error
	DeleteAccessList(ctx context.Context, id string) error

	// BackendsPerCall is how many members each of the following takes; it may become smaller.
	BackendsPerCall() int
	CreateVServerGroup(ctx context.Context, loadBalancerID, name string, members []alicloud.Backend) (string, error)
	DeleteVServerGroup(ctx context.Context, id string) error
	AddBackends(ctx context.Context, groupID string, members []alicloud.Backend) error
	RemoveBackends(ctx context.Context, groupID string, members []alicloud.Backend) error
	SetBackends(ctx context.Context, groupID string, members []alicloud.Backend) error
	ReplaceBackends(ctx context.Context, groupID string, remove, add []alicloud.Backend) error
}
