package slb

import (
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/deploy"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/observe"
)

// API is the part of the cloud that this package calls; *alicloud.Client has it.
type API interface {
	observe.Reader
	deploy.Writer
	BackendsPerCall() int
}

var _ API = (*alicloud.Client)(nil)
