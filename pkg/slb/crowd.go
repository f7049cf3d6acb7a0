package slb

import (
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/groups"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/quota"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/refusal"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/deploy"
)

const (
	// crowdedFor is how long no Service on a CLB has given up backend servers for one that waits for them until that is an error, and it tries
	// without them. While others have more than their share, that is surplusFor: their writes may wait for the rate limit.
	crowdedFor, surplusFor = time.Minute, 10 * time.Minute
	// crowdedWait is how soon the Service that waits has another pass if none of the others gives up any.
	crowdedWait = 10 * time.Second
)

// fullPause is how long no Service tries to have more backend servers on a CLB of a group than it had when the cloud refused one more.
var fullPause = refusal.Pause{First: time.Minute, Least: time.Minute, Longest: 8 * time.Minute}

// fullError says how many backend servers a CLB had, as far as this process knew, when the cloud refused one more.
type fullError struct{ servers int }

func (f *fullError) Error() string {
	return fmt.Sprintf("the cloud refused more than %d backend servers", f.servers)
}

// noteServers notes how many backend servers the Service has on the CLB of its group.
func (c *clb) noteServers(svc *corev1.Service) {
	if !c.group.IsZero() && c.ID() != "" {
		c.shared.Hold(svc, c.ID(), groups.Held{Servers: serversOf(c.groups.Value), Listeners: len(c.servedPorts(svc))})
	}
}

// mostServers is how many backend servers the Service can have on the CLB of its group while the others have theirs, as far as this process
// knows. It is false where the cloud is to be asked: what is known may be wrong, so that nobody waits for long only because of it.
func (c *clb) mostServers(svc *corev1.Service) (most int, known bool) {
	if c.group.IsZero() || c.ID() == "" {
		return 0, false
	}
	limit, now := c.config.Quotas.Of(quota.BackendsPerCLB, c.ID()), time.Now()
	total, _ := c.shared.Servers(c.group, c.ID())
	refused := c.full.Err(c.ID(), now)
	full, paused := errors.AsType[*fullError](refused)
	switch {
	case paused:
		limit.Value = min(limit.Value, full.servers)
	case c.crowdedLong(svc, now):
		return 0, false
	case limit.Assumed && limit.Source != quota.Refusal && total > limit.Value:
		return 0, false
	}
	return limit.Value - total + serversOf(c.groups.Value), true
}

// crowdedLong reports whether the Service has waited in vain for others on the CLB to give up backend servers.
func (c *clb) crowdedLong(svc *corev1.Service, now time.Time) bool {
	if c.crowdedSince.IsZero() {
		return false
	}
	since := c.crowdedSince
	if freed := c.shared.FreedAt(c.ID()); freed.After(since) {
		since = freed
	}
	waited := now.Sub(since)
	return waited >= surplusFor || waited >= crowdedFor && !c.shared.HasSurplus(c.ID(), mark.ServiceName(svc), c.share(svc))
}

// share is how many backend servers each port of the Service may have on the CLB of its group.
func (c *clb) share(svc *corev1.Service) int {
	limit := c.config.Quotas.Of(quota.BackendsPerCLB, c.ID()).Value
	return c.shared.Share(c.group, svc, c.ID(), limit)
}

// fewest returns how many backend servers the smallest vServer group of the Service has.
func (c *clb) fewest() int {
	least := 0
	for i := range c.groups.Value {
		if n := len(c.groups.Value[i].Backends); i == 0 || n < least {
			least = n
		}
	}
	return least
}

// waitsNoMore notes that the Service has room for all its backend servers.
func (c *clb) waitsNoMore(svc *corev1.Service) {
	c.crowdedSince = time.Time{}
	c.shared.WaitNoMore(svc.UID)
}

// waitsForOthers turns the lack of room for backend servers into a wait while others on the CLB may be about to give up some.
func (c *clb) waitsForOthers(svc *corev1.Service, err error) error {
	if c.group.IsZero() || !deploy.LacksRoom(err) {
		c.waitsNoMore(svc)
		return err
	}
	now := time.Now()
	if c.crowdedSince.IsZero() {
		c.crowdedSince = now
	}
	c.shared.Wait(svc, c.ID(), c.fewest(), c.share(svc))
	if c.crowdedLong(svc, now) {
		return err
	}
	return &problem.WaitError{Reason: "the other Services of load balancer group " + c.group.String() + " give up backend servers",
		For: crowdedWait}
}
