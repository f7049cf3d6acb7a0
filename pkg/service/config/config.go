package config

import (
	"fmt"
	"slices"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/backend"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/policy"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/quota"
)

// Config is what the cloud config file and the flags say about CLBs.
type Config struct {
	// ClusterID ends the names and is a tag of everything that is created. Required. An adopted CLB keeps the one it has.
	ClusterID string
	// VPCID is the VPC of the nodes. Required for CLBs of address type intranet.
	VPCID string
	// VSwitchIDs are the vSwitches for CLBs of address type intranet, in the order in which they are tried.
	VSwitchIDs []string
	// ResourceGroupID is the resource group of new CLBs. Empty means the account's default.
	ResourceGroupID string
	// DisablePublicSLB refuses Services that ask for a public address. Existing CLBs are left as they are, and their
	// deletion works.
	DisablePublicSLB bool
	// DefaultBackendENI makes addresses of pods the backends where no annotation says otherwise. It needs pods whose
	// addresses belong to network interfaces of the VPC.
	DefaultBackendENI bool
	// Region is the region of the CLBs. The zones of a CLB must be in it.
	Region string
	// TypeAnnotation is the feature gate [annotation.GateLoadBalancerType].
	TypeAnnotation bool
	// APIServerAddresses are those by which this program reaches the API server. A CLB with one of them is never reused.
	APIServerAddresses []string
	// FindAPIServer returns what else is known of the API servers now. nil knows nothing.
	FindAPIServer func() policy.APIServer
	// Policy is what the cluster's owner lets the authors of Services use. It restricts nothing by default.
	Policy policy.Policy
	// Paused says that nothing may be written to the cloud now; plans are made and shown all the same. nil never pauses.
	Paused func() bool
	// ControlPlaneNodes says whether nodes labeled node-role.kubernetes.io/master are backends. Default
	// [backend.ControlPlaneAuto].
	ControlPlaneNodes backend.ControlPlanePolicy
	// BackendSubset is how many of the nodes are backends of a Service that does not say so. Default [backend.SubsetAuto].
	BackendSubset backend.Subset
	// IPMode is the mode of the addresses of Services that do not say so, see [annotation.IPMode]. Empty leaves it to the API server.
	IPMode string
	// DefaultNLB has Services without a class get an NLB instead of a CLB.
	DefaultNLB bool
	// NLBZoneMaps are the zones of new NLBs of Services that name none, as in the annotation. Empty: those with the most nodes.
	NLBZoneMaps string
	// Quotas is what is known of the quotas of the account.
	Quotas *quota.Book
}

// APIServer returns all that is known of the API servers.
func (c Config) APIServer() policy.APIServer {
	var known policy.APIServer
	if c.FindAPIServer != nil {
		known = c.FindAPIServer()
	}
	known.Addresses = slices.Concat(known.Addresses, c.APIServerAddresses)
	return known
}

// RefusesCreated says why Services of a namespace may not name a load balancer with these tags by its ID, "" if they may: a controller
// created it for one Service, or for a group that the namespace may not join. The owner of the account can allow it by [mark.TagAllow].
func (c Config) RefusesCreated(namespace string, tags []alicloud.Tag) string {
	for _, tag := range tags {
		if tag.Key == mark.TagOwner || tag.Key == mark.TagCluster {
			return fmt.Sprintf("was created by a controller (tag %s=%s), and serves something else", tag.Key, tag.Value)
		}
	}
	at := slices.IndexFunc(tags, func(tag alicloud.Tag) bool { return tag.Key == mark.TagGroup })
	if at < 0 || slices.ContainsFunc(tags, func(tag alicloud.Tag) bool {
		return tag.Key == mark.TagAllow && policy.Allows(tag.Value, c.ClusterID, namespace)
	}) {
		return ""
	}
	group, ok := mark.ParseGroup(tags[at].Value)
	if ok && group.ClusterID == c.ClusterID && c.Policy.AllowsGroup(namespace, group.Namespace, group.Name) {
		return ""
	}
	return fmt.Sprintf("was created by a controller (tag %s=%s), for a group that the namespace may not join", mark.TagGroup, tags[at].Value)
}

// RefusesPublic is an error for a Service that asks for a new public load balancer, where those are switched off. The name is that of the
// product's load balancers.
func (c Config) RefusesPublic(params annotation.Params, name string) error {
	if !c.DisablePublicSLB || params.Has(annotation.LoadBalancerID) || params.AddressType() != alicloud.AddressInternet {
		return nil
	}
	return &problem.ConfigError{Field: "disablePublicSLB", Reason: fmt.Sprintf(
		"public %ss are switched off in the cloud config; ask for one with the annotation %s: intranet", name, annotation.AddressType.Key())}
}
