package service

import (
	"math"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/waits"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/backend"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/quota"
)

// chooseBackends chooses the backends of a Service, and counts them. It returns the other Services that choose anew because of that.
func (r *Reconciler) chooseBackends(
	svc *corev1.Service, known state, in driver.Inputs,
) (choice backend.Choice, wakes []types.NamespacedName) {
	input := known.balancer.Backends(in)
	product := known.engine.Product()
	r.use.mu.Lock()
	defer r.use.mu.Unlock()
	p := r.countedUse(known.engine)
	wasKnown, room := p.known, known.balancer.Room(in)
	each, on := product.AttachmentsOf(svc), sharedOn(product, svc, known.balancer, in.Params)
	before := p.observeUse(svc.UID, &room, each, on)
	wanted := r.withoutUse(product, p, in, input, room, on)
	choice = backend.Choose(input, wanted)
	after := useOf(svc, input, choice, before.observed, r.opts.pausedBy(svc) != "")
	after.each, after.on = each, on
	p.putUse(svc.UID, after)
	if input.UsesAllNodes() {
		p.nodes = len(input.Ready())
	}
	switch {
	case !wanted.Use.Known:
	case !wasKnown:
		p.step = r.stepOf(product, p)
		wakes = p.servicesWhere(svc.UID, func(use serviceUse) bool { return use.waits })
	case r.stepChanged(product, p):
		wakes = p.servicesWhere(svc.UID, anyService)
	case after.short && after.chooses && !before.short:
		wakes = p.servicesWhere(svc.UID, func(use serviceUse) bool { return use.spares || use.chooses && use.hasAny(after.without) })
	case len(after.without) > 0 && !slices.Equal(before.without, after.without):
		wakes = p.servicesWhere(svc.UID, func(use serviceUse) bool { return use.chooses && use.hasAny(after.without) })
	}
	return choice, wakes
}

// chooseLeft chooses the backends of a Service on a load balancer that it leaves, and counts nothing: others count with what it has at its
// new place.
func (r *Reconciler) chooseLeft(svc *corev1.Service, engine driver.Engine, left driver.Balancer, in driver.Inputs) backend.Choice {
	input := left.Backends(in)
	r.use.mu.Lock()
	defer r.use.mu.Unlock()
	p, product := r.countedUse(engine), engine.Product()
	use, counted := p.services[svc.UID]
	choice := backend.Choose(input, r.withoutUse(product, p, in, input, left.Room(in), sharedOn(product, svc, left, in.Params)))
	if counted {
		p.putUse(svc.UID, use)
	}
	return choice
}

// withoutUse has a Service count no more, and returns what its choice depends on then. on is the load balancer that it shares. The caller
// holds the lock.
func (r *Reconciler) withoutUse(
	product driver.Product, p *productUse, in driver.Inputs, input backend.Input, room backend.Room, on string,
) backend.ChoiceInput {
	most := r.attachmentQuota(product, p)
	p.dropUse(in.Service.UID)
	nodes := 0
	if !input.Pods {
		nodes = len(input.Ready())
	}
	selector, each := in.Params.Get(annotation.BackendLabel), product.AttachmentsOf(in.Service)
	limit := r.opts.Config.Quotas.Limit(product.AttachmentQuota)
	refused, kept := p.refusedNow(limit.Value), sync.OnceValue(p.kept) // few ask
	return backend.ChoiceInput{
		Service: in.Service.UID, Subset: r.subsetFor(in.Params.Get(annotation.BackendSubset)), Room: room,
		Use: backend.Use{
			Quota: most, Assumed: limit.Source == quota.Published, Each: each, Refused: refused, Share: p.nodesPerBalancer(most, selector, nodes),
			Scarce: p.short > 0, Known: p.isKnown(in.Service.UID),
			Fits:   len(refused) == 0 && (most == 0 || p.demand.most <= most && !p.leaving),
			Load:   func(id string) int { return p.load[id] },
			Times:  func(id string) int { return p.taken.usesByOthers(on, id, each) },
			Wanted: func(id string) int { return p.wanted.usesByOthers(on, id, each) },
			Kept:   func(id string) int { return kept().usesByOthers(on, id, each) },
		},
	}
}

// nodesPerBalancer returns how many of n nodes that a Service selects are to be behind each load balancer. What others than the Services
// use of nodes, refusals have shown.
func (p *productUse) nodesPerBalancer(most int, selector string, n int) float64 {
	others := p.byPods
	for _, refused := range p.refused {
		others += max(most-refused.times, 0)
	}
	return backend.ShareOf(most, n, p.demand.unitsFor(selector, n), others*n/max(p.nodes, n, 1))
}

// stepOf returns what the share of each Service follows now.
func (r *Reconciler) stepOf(product driver.Product, p *productUse) shareStep {
	most := r.attachmentQuota(product, p)
	if math.IsInf(p.nodesPerBalancer(most, "", p.nodes), 1) {
		return shareStep{}
	}
	return shareStep{most, backend.StepOf(most, p.demand.unitsFor("", p.nodes))}
}

// stepChanged reports whether the share of each Service has changed by a step since they last chose for that.
func (r *Reconciler) stepChanged(product driver.Product, p *productUse) bool {
	before := p.step
	p.step = r.stepOf(product, p)
	return p.step != before
}

// countedUse returns what the Services of a product have and want now. The caller holds the lock.
func (r *Reconciler) countedUse(engine driver.Engine) *productUse {
	generation, p := r.use.generation.Load(), r.use.useOfProduct(engine)
	if !r.use.followed.Load() || p.demandAt != generation || len(p.demand.services) == 0 {
		p.demand, p.demandAt, p.leaving = r.countDemand(engine), generation, false
		for uid := range p.services {
			p.leaving = p.leaving || !p.demand.services.Has(uid)
		}
	}
	return p
}

// attachmentQuota returns how many times an instance may be a backend of a product, 0 for any number. A quota that is only assumed is
// larger if an instance is one more times than that: it allows any number until the cloud refuses some instance. Otherwise, each Service
// would try each instance.
func (r *Reconciler) attachmentQuota(product driver.Product, p *productUse) int {
	limit := r.opts.Config.Quotas.Limit(product.AttachmentQuota)
	observed := p.maxObserved()
	switch {
	case !limit.Exceeded(observed):
		return limit.Value
	case len(p.refusedNow(limit.Value)) > 0:
		return observed
	}
	return 0
}

// subsetFor returns how many nodes a Service asks for: by the text of its annotation, else by the cloud-config.
func (r *Reconciler) subsetFor(text string) backend.Subset {
	if wanted, ok := backend.ParseSubset(text); ok {
		return wanted
	}
	return r.opts.Config.BackendSubset
}

// sharedOn returns the load balancer on which an instance counts once for all Services that share it, empty for none.
func sharedOn(product driver.Product, svc *corev1.Service, balancer driver.Balancer, params annotation.Params) string {
	if product.AttachedPerGroup || balancer.SharedID(svc, params) == "" {
		return ""
	}
	return balancer.ID()
}

// countDeployed counts what a Service has after its plan. If it has given nodes up, those that lack some choose anew.
func (r *Reconciler) countDeployed(svc *corev1.Service, balancer driver.Balancer, in driver.Inputs, engine driver.Engine) {
	room := balancer.Room(in)
	r.wakeAll(r.servicesToWake(svc, &room, engine))
}

func (r *Reconciler) servicesToWake(svc *corev1.Service, room *backend.Room, engine driver.Engine) []types.NamespacedName {
	r.use.mu.Lock()
	defer r.use.mu.Unlock()
	p := r.use.useOfProduct(engine)
	use, ok := p.services[svc.UID]
	if !ok || engine.Product().Jobs && !room.HasMore(use.observed) { // the jobs that remove backends are still under way
		return nil
	}
	before := len(use.observed)
	use = use.withInstances(room.Times())
	p.putUse(svc.UID, use)
	if len(use.observed) >= before {
		return nil
	}
	return p.servicesWhere(svc.UID, func(use serviceUse) bool { return use.short })
}

// noteRefused notes which instances the cloud refused to let be backends once more in a pass of a Service. Of a suspected one another quota
// may be used up, unless it is a backend at least half as many times as it can be.
func (r *Reconciler) noteRefused(svc *corev1.Service, engine driver.Engine, deployed driver.Deployment) {
	if len(deployed.Exhausted)+len(deployed.Suspected) == 0 {
		return
	}
	r.use.mu.Lock()
	defer r.use.mu.Unlock()
	p := r.use.useOfProduct(engine)
	limit := r.opts.Config.Quotas.Limit(engine.Product().AttachmentQuota).Value
	use := p.services[svc.UID]
	p.dropUse(svc.UID)
	suspected := slices.DeleteFunc(slices.Clone(deployed.Suspected), func(id string) bool { return 2*p.taken.of[id] < limit })
	refused := slices.Concat(deployed.Exhausted, suspected)
	use.chosen = slices.DeleteFunc(slices.Clone(use.chosen), func(id string) bool { return slices.Contains(refused, id) })
	p.putUse(svc.UID, use.withInstances(use.observed))
	for _, id := range refused {
		p.noteRefusal(id, limit)
	}
}

// forgetUse has the other Services take what a Service had that is gone.
func (r *Reconciler) forgetUse(uid types.UID) { r.wakeAll(r.forgottenUse(uid)) }

func (r *Reconciler) forgottenUse(uid types.UID) (wakes []types.NamespacedName) {
	r.use.markChanged()
	r.use.mu.Lock()
	defer r.use.mu.Unlock()
	for engine, p := range r.use.byEngine {
		if _, ok := p.services[uid]; !ok {
			continue
		}
		p.forget(uid)
		isToChoose := func(use serviceUse) bool { return use.short }
		if p.step != (shareStep{}) {
			if r.countedUse(engine); r.stepChanged(engine.Product(), p) {
				isToChoose = anyService
			}
		}
		wakes = append(wakes, p.servicesWhere(uid, isToChoose)...)
	}
	return wakes
}

// wakeAll has Services choose anew.
func (r *Reconciler) wakeAll(services []types.NamespacedName) {
	if r.wake == nil {
		return
	}
	for _, key := range services {
		r.wake(key)
	}
}

// retryIn returns when a Service chooses its nodes again without any event, 0 for not.
func retryIn(choice backend.Choice) time.Duration {
	switch {
	case len(choice.Nodes) == 0 && (choice.Short || choice.Waits):
		return waits.NoNode
	case choice.Gives:
		return waits.NodeGivenUp
	case choice.Short, choice.Waits:
		return waits.FewNodes
	}
	return 0
}
