package slb

import "github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/quota"

// Uses implements service.Balancer.
func (c clb) Uses() []quota.Use {
	actual := c.model()
	if actual == nil || c.ID() == "" {
		return nil
	}
	uses := []quota.Use{{Code: quota.ListenersPerCLB, Used: len(actual.Listeners)}, {Code: quota.BackendsPerCLB, Used: serversOf(actual.Groups)}}
	if actual.Access != nil {
		uses = append(uses, quota.Use{Code: quota.ACLs, Used: 1})
	}
	return uses
}
