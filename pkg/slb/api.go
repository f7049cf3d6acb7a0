package slb

import (
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// API is the part of the cloud that this package calls; *alicloud.Client has it.
type API interface {
	reader
	writer
}

var _ API = (*alicloud.Client)(nil)
