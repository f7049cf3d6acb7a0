package service

import (
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/backend"
)

// crowds know which nodes the Services of each product have as backends. An instance can be a backend only so many times: what one Service takes, another
// one cannot have.
type crowds struct {
	// generation counts changes of Services; without somebody who follows them, each pass counts the Services itself.
	generation atomic.Uint64
	followed   atomic.Bool

	mu       sync.Mutex // guards the rest
	byEngine map[Engine]*crowd
}

// crowd is the Services of one product. It can be rebuilt from the Services and the cloud.
type crowd struct {
	stakes map[types.UID]stake
	// whole is how many times each node is a backend of Services that have all of them, of how many times an instance is one of the others.
	whole int
	of    map[string]int
	// total is the sum of the values of of.
	total int
	// attached is the same for the quota of the cloud. proven is what of it the cloud is known to have accepted, and proofs are from which Services that is known.
	attached, proven attached
	proofs           map[types.UID]proof
	locals           locals
	// version counts changes of whole and of; least is the result of [crowd.leastOf] at leastAt.
	version uint64
	least   int
	leastAt struct {
		version uint64
		first   **backend.Node
		n       int
	}
	// counted are the Services, at countedAt.
	counted   demand
	countedAt uint64
	// nodes is how many nodes there are, woken for what the Services were last woken, once it was known what every Service has. before is for what the last one chose
	// until then, and differs says that they did not all choose for the same: what some of them had in the cloud has proven a larger quota.
	nodes         int
	woken, before backend.Crowding
	differs       bool
}

// changed has Services counted anew.
func (c *crowds) changed() { c.generation.Add(1) }

// crowdOf returns the Services of a product. The caller holds the lock.
func (c *crowds) crowdOf(engine Engine) *crowd {
	if c.byEngine == nil {
		c.byEngine = map[Engine]*crowd{}
	}
	known := c.byEngine[engine]
	if known == nil {
		known = newCrowd()
		c.byEngine[engine] = known
	}
	return known
}

func newCrowd() *crowd {
	return &crowd{stakes: map[types.UID]stake{}, of: map[string]int{}, proofs: map[types.UID]proof{}}
}

// choose chooses the backends of a Service, and notes which nodes they are. It reports whether other Services may have to choose anew.
func (r *Reconciler) choose(svc *corev1.Service, known state, in Inputs) (choice backend.Choice, others bool) {
	input, room := known.balancer.Backends(in), known.balancer.Room(in)
	product := known.engine.Product()
	ready := []*backend.Node(nil)
	if !input.Pods {
		ready = input.Ready()
	}
	c := &r.crowds
	generation := c.generation.Load()
	c.mu.Lock()
	defer c.mu.Unlock()
	crowd := c.crowdOf(known.engine)
	if !c.followed.Load() || crowd.countedAt != generation || crowd.counted.services == 0 {
		crowd.counted, crowd.countedAt = r.demand(known.engine), generation
	}
	refused := crowd.stakes[svc.UID].refused
	crowd.giveUp(svc.UID)
	each, on := product.attachments(svc), sharedOn(product, svc, known.balancer, in.Params)
	crowd.know(svc.UID, room, each, on)
	found := crowd.seen(crowd.units(in.Params.Get(annotation.BackendLabel), len(ready)), len(ready), each, r.quotaOf(product, crowd), on)
	found.Refused = r.opts.Config.Quotas.Refused(product.AttachmentQuota)
	choice = backend.Choose(input, backend.Wish{Service: svc.UID, Subset: r.subset(in.Params.Get(annotation.BackendSubset)), Room: room, Crowd: found})
	crowd.hold(svc.UID, stakeOf(input, choice, each, on, refused))
	if input.UsesAllNodes() {
		crowd.nodes = len(ready)
	}
	return choice, r.crowdingChanged(product, crowd)
}

// crowdingChanged reports whether how much of the nodes each Service may have has changed since the Services were last woken for that.
func (r *Reconciler) crowdingChanged(product Product, crowd *crowd) bool {
	now := backend.Crowd{Quota: r.quotaOf(product, crowd), Units: crowd.units("", crowd.nodes)}.Crowding()
	crowd.differs = crowd.differs || len(crowd.stakes) > 1 && now != crowd.before
	crowd.before = now
	if len(crowd.stakes) < crowd.counted.services {
		return false // the last one of them reports it
	}
	changed := now != crowd.woken || crowd.differs
	crowd.woken, crowd.differs = now, false
	return changed
}

// deployed notes what a Service has after its plan: what it gave up, another one can have.
func (r *Reconciler) deployed(svc *corev1.Service, balancer Balancer, in Inputs, engine Engine) {
	if !in.Choice.Some && svc.Spec.ExternalTrafficPolicy != corev1.ServiceExternalTrafficPolicyLocal {
		return
	}
	input := balancer.Backends(in)
	choice := in.Choice
	choice.Room = balancer.Room(in)
	r.crowds.mu.Lock()
	defer r.crowds.mu.Unlock()
	product, crowd := engine.Product(), r.crowds.crowdOf(engine)
	each, on := product.attachments(svc), sharedOn(product, svc, balancer, in.Params)
	refused := crowd.stakes[svc.UID].refused
	crowd.giveUp(svc.UID)
	crowd.know(svc.UID, choice.Room, each, on)
	crowd.hold(svc.UID, stakeOf(input, choice, each, on, refused))
}

// exhausted notes which instances the cloud refused to let be backends once more in a pass of a Service.
func (r *Reconciler) exhausted(svc *corev1.Service, engine Engine, instanceIDs []string) {
	r.crowds.mu.Lock()
	defer r.crowds.mu.Unlock()
	product, crowd := engine.Product(), r.crowds.crowdOf(engine)
	if held := crowd.stakes[svc.UID]; held.local && len(held.refused)+len(instanceIDs) > 0 {
		crowd.giveUp(svc.UID)
		crowd.hold(svc.UID, held.withoutRefused().withRefused(instanceIDs))
	}
	for _, id := range instanceIDs {
		has := crowd.attached.times(id) - product.attachments(svc) // what was refused is counted already
		r.opts.Config.Quotas.Learn(product.AttachmentQuota, id, max(has, 0))
	}
}

// subset returns how many nodes a Service asks for: by the text of its annotation, else by the cloud-config.
func (r *Reconciler) subset(text string) backend.Subset {
	if wanted, ok := backend.ParseSubset(text); ok {
		return wanted
	}
	return r.opts.Config.BackendSubset
}

// quotaOf returns how many times an instance may be a backend of a product, 0 for any number. A quota that is only assumed is larger if an instance is one more
// times than that.
func (r *Reconciler) quotaOf(product Product, crowd *crowd) int {
	limit := r.opts.Config.Quotas.Limit(product.AttachmentQuota)
	if !limit.Assumed {
		return limit.Value
	}
	if _, proven := crowd.proven.most(); proven > limit.Value {
		return 0
	}
	return limit.Value
}

// units is how many times each of n nodes becomes a backend that a Service with these labels selects. Before it is known what every Service has, one
// whose pods determine the backends may have all nodes: a Service that has some nodes does not take others that it would have to give back.
func (c *crowd) units(selector string, n int) int {
	units := c.counted.of(selector, n, c.locals.among(n, c.nodes))
	if len(c.stakes)+1 >= c.counted.services {
		return units
	}
	return units + max(c.counted.local-c.locals.services, 0)
}

// seen returns what the other Services make of n nodes, for one of which each node counts so many times, on a load balancer that it shares.
func (c *crowd) seen(units, n, each, quota int, on string) backend.Crowd {
	return backend.Crowd{
		Quota: quota, Units: units, Each: each, Total: c.total + c.whole*n, Settled: len(c.stakes)+1 >= c.counted.services,
		Load: func(id string) int { return c.whole + c.of[id] }, Attached: func(id string) int { return c.attached.without(on, each, id) }, Least: c.leastOf,
	}
}

// leastOf returns the least load of nodes. Mostly they are those of the pass before.
func (c *crowd) leastOf(nodes []*backend.Node) int {
	if len(nodes) == 0 {
		return 0
	}
	if at := c.leastAt; at.version == c.version && at.first == &nodes[0] && at.n == len(nodes) {
		return c.least
	}
	least := c.of[nodes[0].InstanceID]
	for _, node := range nodes {
		least = min(least, c.of[node.InstanceID])
	}
	c.least, c.leastAt.version, c.leastAt.first, c.leastAt.n = least+c.whole, c.version, &nodes[0], len(nodes)
	return c.least
}

// leaveCrowd has the other Services take what a Service had that is gone.
func (r *Reconciler) leaveCrowd(uid types.UID) {
	if r.leaves(uid) {
		r.wakeCrowd(uid)
	}
}

// leaves forgets what a Service had. It reports whether other Services may have to choose anew.
func (r *Reconciler) leaves(uid types.UID) (others bool) {
	c := &r.crowds
	c.changed()
	generation := c.generation.Load()
	c.mu.Lock()
	defer c.mu.Unlock()
	for engine, crowd := range c.byEngine {
		if _, ok := crowd.stakes[uid]; !ok {
			continue
		}
		crowd.forget(uid)
		if crowd.woken.Crowded {
			crowd.counted, crowd.countedAt = r.demand(engine), generation
			others = r.crowdingChanged(engine.Product(), crowd) || others
		}
	}
	return others
}

// wakeCrowd has all other Services of a product choose anew.
func (r *Reconciler) wakeCrowd(except types.UID) {
	if r.wake == nil {
		return
	}
	for _, key := range r.states.others(except) {
		r.wake(key)
	}
}
