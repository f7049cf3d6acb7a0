package service

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/quota"
)

// uses are what the load balancers of all Services use of quotas, as the last pass over each of them left it.
type uses struct {
	mu    sync.Mutex // guards bySvc
	bySvc map[types.NamespacedName]share
}

// share is what the load balancer of one Service uses, as far as the Service knows it.
type share struct {
	service *corev1.Service
	engine  driver.Engine
	id      string
	of      []quota.Use
	// firm says that nobody chooses the backends of the Service: it does not give any up.
	firm bool
	// overflows says that its load balancer group opens another load balancer where one has no room.
	overflows bool
}

// firmUse returns how much of a use the manager cannot give up, or have on another load balancer. The ports of one Service stay together.
func (s share) firmUse(use quota.Use) int {
	product := s.engine.Product()
	switch {
	case use.Code == product.BackendQuota && !s.firm:
		return 0
	case use.Code == product.ListenerQuota && s.overflows:
		return min(use.Used, len(s.service.Spec.Ports))
	}
	return use.Used
}

// noteService takes note of what a Service uses. The Service is as the cache or the API server gave it: nobody changes it.
func (u *uses) noteService(svc *corev1.Service, known state, firm bool) {
	if known.balancer.ID() == "" {
		u.dropService(mark.ServiceName(svc))
		return
	}
	held := share{svc, known.engine, known.balancer.ID(), known.balancer.Uses(), firm, annotation.GroupOverflows(svc)}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.bySvc == nil {
		u.bySvc = map[types.NamespacedName]share{}
	}
	u.bySvc[mark.ServiceName(svc)] = held
}

func (u *uses) dropService(key types.NamespacedName) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.bySvc, key)
}

// quotaSubject is a quota of a load balancer, by its id, or of the account, with an empty id.
type quotaSubject struct {
	code quota.Code
	id   string
}

// figure is how much of a quota is used.
type figure struct {
	used int
	// firm is how much of that the manager cannot give up: it keeps within a quota by itself where it chooses the nodes, or opens another load
	// balancer of a group.
	firm int
	// grows says that a group opens another load balancer.
	grows bool
	// of is whose quota it is, empty for one of the account; by is who uses what used is, where that is another one.
	of, by string
	// on is the Service that is shown with an event about it: the newest one uses the quota up.
	on *corev1.Service
}

// quotaFigures returns how much is used of each quota.
func (u *uses) quotaFigures() map[quotaSubject]figure {
	u.mu.Lock()
	defer u.mu.Unlock()
	count := len(u.bySvc)
	found, balancers := make(map[quotaSubject]figure, 2*count), make(map[string]bool, count)
	used, firm := make(parts, 2*count), make(parts, 2*count)
	for _, held := range u.bySvc {
		product := held.engine.Product()
		if !balancers[held.id] { // several Services may share it
			balancers[held.id] = true
			found[quotaSubject{code: product.BalancerQuota}] = found[quotaSubject{code: product.BalancerQuota}].addUse(1, 1, held.service)
		}
		for _, use := range held.of {
			if use.Code.OfAccount() { // each Service has its own
				found[quotaSubject{code: use.Code}] = found[quotaSubject{code: use.Code}].addUse(use.Used, use.Used, held.service)
				continue
			}
			of := quotaSubject{use.Code, held.id}
			now := found[of].addUse(used.addPart(part{of, use.Part}, use.Used), firm.addPart(part{of, use.Part}, held.firmUse(use)), held.service)
			now.of, now.grows = held.id, now.grows || held.overflows && use.Code == product.ListenerQuota
			found[of] = now
		}
	}
	return found
}

// addUse returns the figure with so many more.
func (f figure) addUse(used, firm int, svc *corev1.Service) figure {
	f.used, f.firm = f.used+used, f.firm+firm
	if f.on == nil || driver.ByAge(svc, f.on) > 0 {
		f.on = svc
	}
	return f
}

// part is a part of what a load balancer uses.
type part struct {
	quotaSubject

	name string
}

// parts are how much each of them uses. Several Services may know the same one, some of them as it was a while ago.
type parts map[part]int

// addPart returns how much more is used because of a part.
func (p parts) addPart(of part, used int) int {
	more := max(used-p[of], 0)
	p[of] += more
	return more
}
