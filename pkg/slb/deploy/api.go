package deploy

import (
	"context"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// Writer is the part of the cloud that a plan calls.
type Writer interface {
	loadBalancerWriter
	listenerWriter
	extensionWriter
	accessListWriter
	groupWriter
}

// loadBalancerWriter changes CLBs.
type loadBalancerWriter interface {
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
}

// listenerWriter changes listeners.
type listenerWriter interface {
	CreateListener(ctx context.Context, loadBalancerID string, listener alicloud.Listener) error
	SetListener(ctx context.Context, loadBalancerID string, listener alicloud.Listener) error
	// ReserveReplacement waits until the calls that replace a listener can follow one another without a wait.
	ReserveReplacement(ctx context.Context, old, wanted alicloud.ListenerKey) (context.Context, error)
	StartListener(ctx context.Context, loadBalancerID string, key alicloud.ListenerKey) error
	DeleteListener(ctx context.Context, loadBalancerID string, key alicloud.ListenerKey) error
}

// extensionWriter changes domain extensions.
type extensionWriter interface {
	CreateDomainExtension(ctx context.Context, loadBalancerID string, port int, extension alicloud.DomainExtension) (string, error)
	SetDomainExtension(ctx context.Context, id, certificateID string) error
	DeleteDomainExtension(ctx context.Context, id string) error
}

// accessListWriter changes access control lists.
type accessListWriter interface {
	CreateAccessList(ctx context.Context, list alicloud.AccessList) (string, error)
	AddAccessListEntries(ctx context.Context, id string, entries []string) error
	RemoveAccessListEntries(ctx context.Context, id string, entries []string) error
	DeleteAccessList(ctx context.Context, id string) error
}

// groupWriter changes vServer groups and their backend servers.
type groupWriter interface {
	// BackendsPerCall is how many backend servers each of the following takes; it may become smaller.
	BackendsPerCall() int
	CreateVServerGroup(ctx context.Context, loadBalancerID, name string, backends []alicloud.Backend) (string, error)
	DeleteVServerGroup(ctx context.Context, id string) error
	AddBackends(ctx context.Context, groupID string, backends []alicloud.Backend) error
	RemoveBackends(ctx context.Context, groupID string, backends []alicloud.Backend) error
	SetBackends(ctx context.Context, groupID string, backends []alicloud.Backend) error
	ReplaceBackends(ctx context.Context, groupID string, remove, add []alicloud.Backend) error
}
