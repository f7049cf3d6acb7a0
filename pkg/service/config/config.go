package config

import (
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/backend"
)

// Config is what the cloud config file and the flags say about CLBs.
type Config struct {
	// ClusterID ends the names and is a tag of everything that is made. Required. An adopted CLB keeps the one it has.
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
	// ControlPlaneNodes says whether nodes labelled node-role.kubernetes.io/master are backends. Default
	// [backend.ControlPlaneAuto].
	ControlPlaneNodes backend.ControlPlanePolicy
}
