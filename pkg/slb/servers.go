package slb

import (
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/waits"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/quota"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/refusal"
)

// fullPause is how long no Service tries to have more backend servers on a CLB of a group than it had when the cloud refused one more.
var fullPause = refusal.Fixed(waits.LoadBalancerFull)

// fullError says how many backend servers a CLB had, as far as this process knew, when the cloud refused one more.
type fullError struct{ servers int }

func (f *fullError) Error() string {
	return fmt.Sprintf("the cloud refused more than %d backend servers", f.servers)
}

// noteServers notes how many backend servers the Service has on the CLB of its group.
func (c *clb) noteServers(svc *corev1.Service) {
	if !c.Group.IsZero() && c.ID() != "" {
		c.shared.Hold(svc, c.ID(), serversOf(c.groups.Value))
	}
}

// mostServers is how many backend servers the Service can have on the CLB of its group beside those of the others, as far as this process
// knows. It is false where the cloud is to be asked: a CLB that has more than an assumed quota allows shows that the quota is larger.
func (c *clb) mostServers(svc *corev1.Service) (most int, known bool) {
	if c.Group.IsZero() || c.ID() == "" {
		return 0, false
	}
	limit, others := c.config.Quotas.Of(quota.BackendsPerCLB, c.ID()), c.shared.ServersOfOthers(c.ID(), svc)
	if full, ok := errors.AsType[*fullError](c.full.Err(c.ID(), time.Now())); ok {
		return min(limit.Value, full.servers) - others, true
	}
	if limit.Exceeded(others + serversOf(c.groups.Value)) {
		return 0, false
	}
	return limit.Value - others, true
}
