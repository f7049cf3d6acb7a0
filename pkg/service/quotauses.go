package service

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/quota"
)

// uses are what the load balancers of all Services use of quotas, as the last pass over each of them left it.
type uses struct {
	mu    sync.Mutex // guards bySvc
	bySvc map[types.NamespacedName]share
}

// share is what the load balancer of one Service uses.
type share struct {
	service *corev1.Service
	engine  Engine
	id      string
	of      []quota.Use
	// reused says that the load balancer is an existing one, kept that the Service has some of the nodes, as many as the quotas allow.
	reused, kept bool
}

// note takes note of what a Service uses. The Service is as the cache or the API server gave it: nobody changes it.
func (u *uses) note(svc *corev1.Service, known state, kept bool) {
	if known.balancer.ID() == "" {
		u.drop(mark.ServiceName(svc))
		return
	}
	held := share{svc, known.engine, known.balancer.ID(), known.balancer.Uses(), known.balancer.Reused(), kept}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.bySvc == nil {
		u.bySvc = map[types.NamespacedName]share{}
	}
	u.bySvc[mark.ServiceName(svc)] = held
}

func (u *uses) drop(key types.NamespacedName) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.bySvc, key)
}

// figure is how much of a quota is used. Of a quota of each load balancer, or of each instance, it is that of the one that uses most.
type figure struct {
	used int
	// of is the id of that one, empty for a quota of the account.
	of string
	// kept says that the manager keeps within the quota by itself.
	kept bool
	// on is the Service that is shown with an event about it.
	on *corev1.Service
}

// figures returns how much is used of each quota.
func (u *uses) figures() map[quota.Code]figure {
	u.mu.Lock()
	defer u.mu.Unlock()
	found, counted := map[quota.Code]figure{}, map[string]bool{}
	for _, held := range u.bySvc {
		first := !counted[held.id] // several Services may share it
		counted[held.id] = true
		if first {
			found[held.engine.Product().BalancerQuota] = found[held.engine.Product().BalancerQuota].add(1, held.service)
		}
		for _, use := range held.of {
			switch {
			case !use.Code.OfAccount():
				kept := held.kept && use.Code == held.engine.Product().BackendQuota
				found[use.Code] = found[use.Code].most(figure{use.Used, held.id, kept, held.service})
			case first || !held.reused:
				found[use.Code] = found[use.Code].add(use.Used, held.service)
			}
		}
	}
	return found
}

// add returns the figure with so many more. An event is shown with the newest Service: it is what uses the quota up.
func (f figure) add(n int, svc *corev1.Service) figure {
	f.used += n
	if f.on == nil || ByAge(svc, f.on) > 0 {
		f.on = svc
	}
	return f
}

// most returns the larger one. One within which the manager keeps by itself counts less.
func (f figure) most(other figure) figure {
	switch {
	case f.on == nil, f.kept && !other.kept:
		return other
	case other.kept && !f.kept:
		return f
	case other.used > f.used, other.used == f.used && other.of < f.of:
		return other
	}
	return f
}
