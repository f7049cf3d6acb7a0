package slb

import "github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/quota"

// Uses implements driver.Balancer. The listeners are those of the CLB, the vServer groups those that the Service knows.
func (c clb) Uses() []quota.Use {
	if c.ID() == "" {
		return nil
	}
	groups := c.groups.Value
	uses := make([]quota.Use, 0, len(groups)+2) //nolint:mnd // the listeners and the access control list
	uses = append(uses, quota.Use{Code: quota.ListenersPerCLB, Used: len(c.listeners.Value)})
	for i := range groups {
		uses = append(uses, quota.Use{Code: quota.BackendsPerCLB, Used: len(groups[i].Backends), Part: groups[i].ID})
	}
	if c.access.Value != nil {
		uses = append(uses, quota.Use{Code: quota.ACLs, Used: 1})
	}
	return uses
}
