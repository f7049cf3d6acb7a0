package nlb

import "github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/quota"

// Uses implements driver.Balancer. The listeners are those of the NLB, the server groups those that the Service knows.
func (n nlb) Uses() []quota.Use {
	if n.ID() == "" {
		return nil
	}
	groups, own := n.groups.Value, 0
	uses := make([]quota.Use, 0, len(groups)+2) //nolint:mnd // the listeners and the groups of its own
	for i := range groups {
		uses = append(uses, quota.Use{Code: quota.ServersPerNLB, Used: len(groups[i].Servers), Part: groups[i].ID})
		if !groups[i].Foreign {
			own++
		}
	}
	return append(uses, quota.Use{Code: quota.ListenersPerNLB, Used: len(n.listeners.Value)}, quota.Use{Code: quota.NLBGroups, Used: own})
}
