package service

import (
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/waits"
)

// absence is that of a Service that counts, and of which nobody knows what it has.
type absence struct {
	since time.Time
	// passed says that a pass over it has ended, and has not come to know it.
	passed bool
}

// lasts reports whether others wait for the Service.
func (a absence) lasts() bool {
	age := time.Since(a.since)
	return age < waits.OthersSettle || age < waits.OthersSettleAtLast && !a.passed
}

// recount counts the Services anew, and notes those of which nobody knows what they have.
func (r *Reconciler) recount(c *crowd, engine Engine, generation uint64) {
	c.counted, c.countedAt = r.countDemand(engine), generation
	before, now := c.absent, time.Now()
	c.absent = map[types.UID]absence{}
	for _, uid := range c.counted.services {
		if _, ok := c.stakes[uid]; ok {
			continue
		}
		at, ok := before[uid]
		if !ok {
			at.since = now
		}
		c.absent[uid] = at
	}
	maps.DeleteFunc(c.leftAt, func(_ string, at time.Time) bool { return now.Sub(at) > justLeft })
}

// settled reports whether it is known what every Service has that others wait for.
func (c *crowd) settled() bool {
	for _, at := range c.absent {
		if at.lasts() {
			return false
		}
	}
	return true
}

// settlesSoon reports whether a Service that has had a load balancer can wait until it is known what every Service has. One that is new
// waits for nobody: many that come at once would wait for each other.
func (c *crowd) settlesSoon(svc *corev1.Service, balancer Balancer) bool {
	return len(svc.Status.LoadBalancer.Ingress) > 0 && balancer.ID() != "" && time.Since(c.since) < waits.OthersSettle
}

// notePass notes that a pass over a Service has ended that began then. If nobody knows what it has all the same, the others do not wait for
// it much longer. If it does not choose any more, because its load balancer cannot be read or deleted, they soon do not count on it.
func (r *Reconciler) notePass(svc *corev1.Service, began time.Time) {
	engine := r.opts.engineOf(svc)
	r.crowds.mu.Lock()
	defer r.crowds.mu.Unlock()
	if crowd := r.crowds.crowdOf(engine); crowd.knows(svc.UID) {
		crowd.misses(svc.UID, began)
		return
	}
	if !r.opts.wantsBalancer(svc) {
		return
	}
	crowd := r.countedCrowd(engine)
	if at, ok := crowd.absent[svc.UID]; ok {
		at.passed = true
		crowd.absent[svc.UID] = at
	}
}

// knows reports whether it is known what a Service has.
func (c *crowd) knows(svc types.UID) bool {
	_, ok := c.stakes[svc]
	return ok
}

// misses notes that a pass over a Service has ended that began then. If passes do not come to choose for a while, the Service keeps what it
// has.
func (c *crowd) misses(svc types.UID, began time.Time) {
	held, now := c.stakes[svc], time.Now()
	switch {
	case held.idles || !held.chosenAt.Before(began):
	case held.missedAt.IsZero():
		held.missedAt = now
		c.stakes[svc] = held
	case now.Sub(held.missedAt) >= waits.OthersSettle:
		c.giveUp(svc)
		c.hold(svc, held.idle(c.proofs[svc]))
	}
}
