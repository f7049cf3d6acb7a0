package nlb

import "github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/quota"

// Uses implements service.Balancer.
func (n nlb) Uses() []quota.Use {
	actual := n.model()
	if actual == nil || n.ID() == "" {
		return nil
	}
	servers, groups := 0, 0
	for i := range actual.Groups {
		servers += len(actual.Groups[i].Servers)
		if !actual.Groups[i].Foreign {
			groups++
		}
	}
	return []quota.Use{
		{Code: quota.ListenersPerNLB, Used: len(actual.Listeners)}, {Code: quota.ServersPerNLB, Used: servers}, {Code: quota.NLBGroups, Used: groups},
	}
}
