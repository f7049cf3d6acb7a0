package service

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/waits"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/backend"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
)

// instanceUse counts how many times instances are backends of the Services of each product: an instance can be one only so many times. It
// is rebuilt from what the passes over the Services see in the cloud.
type instanceUse struct {
	// generation counts changes of Services; without somebody who follows them, each pass counts the Services itself.
	generation atomic.Uint64
	followed   atomic.Bool

	mu       sync.Mutex // guards the rest
	byEngine map[driver.Engine]*productUse
}

// productUse is that of one product.
type productUse struct {
	services map[types.UID]serviceUse
	// taken is how many times instances are backends, or are about to be, wanted is how many times they would be without a quota, and observed
	// how many times they are. load is how many times they are chosen, where each of the Services on a load balancer counts.
	taken, wanted, observed instanceCounts
	load                    map[string]int
	// mostObserved is the largest value of observed, -1 after a change.
	mostObserved int
	// byPods is how many times all instances together are wanted by Services whose pods decide on them, nodes how many nodes there are.
	byPods, nodes int
	// short is how many Services have too few nodes.
	short   int
	refused map[string]refusedInstance
	// demand is what the Services want, as it was at a generation. leaving says that Services have something that want nothing any more.
	demand   demand
	demandAt uint64
	leaving  bool
	// since is when this process began to count. known says that it knows what every Service has, passed are Services over which a pass has
	// ended.
	since  time.Time
	known  bool
	passed sets.Set[types.UID]
	// step is what decides on the share of each Service, as it was when all of them last chose.
	step shareStep
}

// serviceUse is what one Service has.
type serviceUse struct {
	service types.NamespacedName
	// on is the load balancer that the Service shares, empty for one of its own. An instance counts each times.
	on   string
	each int
	// chosen are the instances that it is to have, without those that it would have if they had not reached their quota. observed is in how
	// many groups it has which. leaving are those of these that it is not to have.
	chosen, without, leaving []string
	// kept are those of the chosen ones that it does not give up, whatever others need.
	kept     []string
	observed map[string]int
	// chooses says that the manager decides which nodes it has, byPods that its pods do, and firm that the quota has no say in it.
	chooses, byPods, firm bool
	// short says that it has too few, spares that it has more than its share, and waits that it chooses once it is known what every Service
	// has.
	short, spares, waits bool
}

// refusedInstance is an instance to which the cloud has refused a Service when it was a backend so many times. That counts while nothing
// has changed that may help.
type refusedInstance struct {
	times, quota int
	until        time.Time
}

// shareStep is what the share of each Service follows in steps; it is zero where each may have all nodes.
type shareStep struct {
	quota int
	units float64
}

// markChanged has Services counted anew.
func (u *instanceUse) markChanged() { u.generation.Add(1) }

// useOfProduct returns what the Services of a product have. The caller holds the lock.
func (u *instanceUse) useOfProduct(engine driver.Engine) *productUse {
	if u.byEngine == nil {
		u.byEngine = map[driver.Engine]*productUse{}
	}
	if u.byEngine[engine] == nil {
		u.byEngine[engine] = newProductUse()
	}
	return u.byEngine[engine]
}

func newProductUse() *productUse {
	return &productUse{
		services: map[types.UID]serviceUse{}, load: map[string]int{}, refused: map[string]refusedInstance{}, passed: sets.New[types.UID](),
		since: time.Now(),
	}
}

// observeUse notes what a Service has in the cloud, and returns that with what it has chosen.
func (p *productUse) observeUse(svc types.UID, room *backend.Room, each int, on string) serviceUse {
	use := p.services[svc]
	if !room.Has(use.observed) || use.each != each || use.on != on {
		use = use.withInstances(room.Times())
		use.each, use.on = each, on
		p.putUse(svc, use)
	}
	return use
}

// putUse notes what a Service has.
func (p *productUse) putUse(svc types.UID, use serviceUse) {
	p.dropUse(svc)
	p.services[svc] = use
	p.countUse(use, 1)
}

// forget drops a Service that is gone. The instances that it has had are tried again at once: what the cloud refused meanwhile may have
// been because of it.
func (p *productUse) forget(svc types.UID) {
	for id := range p.services[svc].observed {
		delete(p.refused, id)
	}
	p.dropUse(svc)
}

// dropUse forgets what a Service has.
func (p *productUse) dropUse(svc types.UID) {
	if use, ok := p.services[svc]; ok {
		delete(p.services, svc)
		p.countUse(use, -1)
	}
}

func (p *productUse) countUse(use serviceUse, by int) {
	p.mostObserved = -1
	for _, id := range use.chosen {
		p.wanted.addUse(use.on, id, use.each, by)
		p.taken.addUse(use.on, id, use.each, by)
		if p.load[id] += by * use.each; p.load[id] == 0 {
			delete(p.load, id)
		}
	}
	for _, id := range use.without {
		p.wanted.addUse(use.on, id, use.each, by)
	}
	for _, id := range use.leaving {
		p.taken.addUse(use.on, id, use.each, by)
	}
	for id, groups := range use.observed {
		p.observed.addUse(use.on, id, min(groups, use.each), by)
	}
	if use.short && use.chooses {
		p.short += by
	}
	if use.byPods {
		p.byPods += by * use.each * (len(use.chosen) + len(use.without))
	}
}

// withInstances returns the use of a Service that has the instances in so many groups.
func (s serviceUse) withInstances(observed map[string]int) serviceUse {
	s.observed, s.leaving = observed, nil
	there := 0
	for _, id := range s.chosen {
		if observed[id] > 0 {
			there++
		}
	}
	if there == len(observed) {
		return s
	}
	chosen := sets.New(s.chosen...)
	for id := range observed {
		if !chosen.Has(id) {
			s.leaving = append(s.leaving, id)
		}
	}
	return s
}

// hasAny reports whether one of the instances is to be a backend of the Service.
func (s serviceUse) hasAny(ids []string) bool {
	return slices.ContainsFunc(s.chosen, func(id string) bool { return slices.Contains(ids, id) })
}

// maxObserved is how many times that instance is a backend for sure which is one the most often. Every pass asks, and few change it.
func (p *productUse) maxObserved() int {
	if p.mostObserved < 0 {
		_, p.mostObserved = p.observed.mostUsed()
	}
	return p.mostObserved
}

// firmCounts is how many times instances are backends of Services that do not give any up.
func (p *productUse) firmCounts() *instanceCounts {
	firm := newProductUse()
	for _, use := range p.services {
		if use.firm {
			firm.countUse(use, 1)
		}
	}
	return &firm.taken
}

// kept is how many times instances are backends of Services that do not give them up, whatever others need.
func (p *productUse) kept() *instanceCounts {
	kept := &instanceCounts{}
	for _, use := range p.services {
		ids := use.kept
		if use.firm {
			ids = use.chosen
		}
		for _, id := range ids {
			kept.addUse(use.on, id, use.each, 1)
		}
	}
	return kept
}

// noteRefusal notes that the cloud refused to let an instance be a backend once more.
func (p *productUse) noteRefusal(id string, quota int) {
	p.refused[id] = refusedInstance{p.taken.of[id], quota, time.Now().Add(waits.InstanceRefused)}
}

// refusedNow returns how many times instances can be backends to which the cloud has refused more: until an hour later, until a Service is
// gone that has had one, or until the quota is another one.
func (p *productUse) refusedNow(quota int) map[string]int {
	maps.DeleteFunc(p.refused, func(_ string, refused refusedInstance) bool {
		return quota != refused.quota || !time.Now().Before(refused.until)
	})
	if len(p.refused) == 0 {
		return nil
	}
	times := make(map[string]int, len(p.refused))
	for id, refused := range p.refused {
		times[id] = max(refused.times, p.observed.of[id]) // a process that has just begun does not know all of them at the refusal
	}
	return times
}

// isKnown reports whether it is known what every Service has. Once it is, it remains so: a new Service has nothing.
func (p *productUse) isKnown(choosing types.UID) bool {
	if p.known {
		return true
	}
	age := time.Since(p.since)
	if age < waits.UseKnownAtLast {
		for uid := range p.demand.services {
			_, chose := p.services[uid]
			if !chose && uid != choosing && (age < waits.UseKnown || !p.passed.Has(uid)) {
				return false
			}
		}
	}
	p.known, p.passed = true, nil
	return true
}

// servicesWhere returns the Services with a property, except one.
func (p *productUse) servicesWhere(except types.UID, is func(serviceUse) bool) []types.NamespacedName {
	var found []types.NamespacedName
	for uid, use := range p.services {
		if uid != except && is(use) {
			found = append(found, use.service)
		}
	}
	return found
}

func anyService(serviceUse) bool { return true }

// notePass notes that a pass over a Service has ended. If nobody knows what it has all the same, the others do not wait for it much longer.
func (r *Reconciler) notePass(svc *corev1.Service) {
	r.use.mu.Lock()
	defer r.use.mu.Unlock()
	if p := r.use.useOfProduct(r.opts.engineOf(svc)); !p.known {
		p.passed.Insert(svc.UID)
	}
}

// useOf returns what a Service has by a choice. A paused Service has what it is known to have in the cloud.
func useOf(svc *corev1.Service, in backend.Input, choice backend.Choice, observed map[string]int, paused bool) serviceUse {
	use := serviceUse{service: mark.ServiceName(svc), byPods: in.Local && !in.Pods, firm: choice.Firm}
	if paused {
		use.chosen = slices.Sorted(maps.Keys(observed))
		return use.withInstances(observed)
	}
	use.chosen, use.chooses, use.short, use.spares, use.waits = choice.InstanceIDs(in), !choice.Firm, choice.Short, choice.Spares, choice.Waits
	use.kept = choice.Kept
	if without := sets.List(choice.Without); choice.Lacking > 0 {
		use.without = without[:min(choice.Lacking, len(without))]
	}
	return use.withInstances(observed)
}
