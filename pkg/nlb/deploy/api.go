package deploy

import (
	"context"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// Writer is the part of the cloud that a plan calls. What a job carries out returns it.
type Writer interface {
	loadBalancerWriter
	attachmentWriter
	groupWriter
	listenerWriter
	accessWriter
	tagWriter
}

// loadBalancerWriter changes NLBs.
type loadBalancerWriter interface {
	CreateNLB(ctx context.Context, lb alicloud.NLB, token string) (id string, err error)
	DeleteNLB(ctx context.Context, id string) (alicloud.Job, error)
	UpdateNLB(ctx context.Context, id string, attributes alicloud.NLBAttributes) (alicloud.Job, error)
	ProtectNLB(ctx context.Context, id string, protection alicloud.NLBProtection) error
	SetNLBAddressType(ctx context.Context, id, addressType string, zones []alicloud.NLBZone) (alicloud.Job, error)
	SetNLBZones(ctx context.Context, id string, zones []alicloud.NLBZone) (alicloud.Job, error)
	SetNLBIPv6AddressType(ctx context.Context, id, addressType string) error
}

// attachmentWriter changes which security groups and bandwidth packages an NLB has.
type attachmentWriter interface {
	JoinSecurityGroups(ctx context.Context, id string, groups []string) (alicloud.Job, error)
	LeaveSecurityGroups(ctx context.Context, id string, groups []string) (alicloud.Job, error)
	AttachBandwidthPackage(ctx context.Context, id, pack string) (alicloud.Job, error)
	DetachBandwidthPackage(ctx context.Context, id, pack string) (alicloud.Job, error)
}

// groupWriter changes server groups and their backend servers.
type groupWriter interface {
	CreateNLBGroup(ctx context.Context, g alicloud.NLBGroup, token string) (id string, job alicloud.Job, err error)
	UpdateNLBGroup(ctx context.Context, id string, settings alicloud.NLBGroupSettings) (alicloud.Job, error)
	DeleteNLBGroup(ctx context.Context, id string) (alicloud.Job, error)
	// ServersPerCall is how many servers each of the following takes; it may become smaller.
	ServersPerCall() int
	AddNLBServers(ctx context.Context, group string, servers []alicloud.NLBServer) (alicloud.Job, error)
	UpdateNLBServers(ctx context.Context, group string, servers []alicloud.NLBServer) (alicloud.Job, error)
	RemoveNLBServers(ctx context.Context, group string, servers []alicloud.NLBServer) (alicloud.Job, error)
}

// listenerWriter changes listeners and their additional certificates.
type listenerWriter interface {
	CreateNLBListener(ctx context.Context, l alicloud.NLBListener, token string) (id string, job alicloud.Job, err error)
	// TryNLBListener returns why the cloud would not take a listener, nil where it would.
	TryNLBListener(ctx context.Context, l alicloud.NLBListener) error
	UpdateNLBListener(ctx context.Context, id string, settings alicloud.NLBListenerSettings) (alicloud.Job, error)
	DeleteNLBListener(ctx context.Context, id string) (alicloud.Job, error)
	StartNLBListener(ctx context.Context, id string) (alicloud.Job, error)
	AddCertificates(ctx context.Context, listener string, ids []string) (alicloud.Job, error)
	RemoveCertificates(ctx context.Context, listener string, ids []string) (alicloud.Job, error)
}

// accessWriter changes the security group of the source ranges.
type accessWriter interface {
	CreateSecurityGroup(ctx context.Context, g alicloud.SecurityGroup, token string) (id string, err error)
	DeleteSecurityGroup(ctx context.Context, id string) error
	AddSecurityRules(ctx context.Context, id string, rules []alicloud.SecurityRule) error
	RemoveSecurityRules(ctx context.Context, id string, rules []alicloud.SecurityRule) error
}

// tagWriter changes the tags of NLBs and server groups.
type tagWriter interface {
	TagNLB(ctx context.Context, kind string, ids []string, tags []alicloud.Tag) error
	UntagNLB(ctx context.Context, kind string, ids, keys []string) error
}
