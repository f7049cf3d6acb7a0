package slb

import (
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/deploy"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/observe"
)

// API is the part of the cloud that this package calls; *alicloud.Client has it.
type API interface {
	reader
	deploy.Writer
}

// reader is the part that changes nothing.
type reader interface {
	observe.Reader
	BackendsPerCall() int
}

var _ API = (*alicloud.Client)(nil)
