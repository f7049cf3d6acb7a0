package service

import (
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/backend"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/quota"
)

// crowds know which nodes the Services of each product have as backends. An instance can be a backend only so many times: what one Service
// takes, another one cannot have.
type crowds struct {
	// generation counts changes of Services; without somebody who follows them, each pass counts the Services itself.
	generation atomic.Uint64
	followed   atomic.Bool

	mu       sync.Mutex // guards the rest
	byEngine map[Engine]*crowd
}

// justLeft is for how long a refused call may have been made before a Service left an instance.
const justLeft = 30 * time.Second

// crowd is the Services of one product. It can be rebuilt from the Services and the cloud.
type crowd struct {
	stakes map[types.UID]stake
	// whole is how many times each node is a backend of Services that have all of them, of how many times an instance is one of the others.
	whole int
	of    map[string]int
	// total is the sum of the values of of.
	total int
	// attached is the same for the quota of the cloud. proven is what of it the cloud is known to have accepted, and proofs are from which
	// Services that is known.
	attached, proven attached
	// provenMost is the result of [crowd.mostProven], -1 after a change.
	provenMost int
	proofs     map[types.UID]proof
	locals     locals
	lack       lack
	// gaveUpAt is when Services last gave up a node that others lacked.
	gaveUpAt map[types.UID]time.Time
	// hungers are of the Services that have no node and lack one, or did until a moment ago.
	hungers map[types.UID]hunger
	// leftAt is when a Service last left an instance.
	leftAt map[string]time.Time
	// chooses is what the Service had that chooses anew: between [crowd.giveUp] and [crowd.hold], of is without it. version counts changes of
	// what of is with it, and least is the least value of that for the nodes of leastAt.
	chooses stake
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
	// absent are those of them of which nobody knows what they have.
	absent map[types.UID]absence
	// nodes is how many nodes there are, shares how many times one can be a backend on average, woken for what the Services were last woken,
	// once it was known what every Service has. before is for what the last one chose until then, and differs says that they did not all
	// choose for the same: what some of them had in the cloud has proven a larger quota.
	nodes, shares int
	woken, before backend.Crowding
	differs       bool
	// waits says that a Service waits until it is known what every Service has.
	waits bool
	// since is when the first pass over a Service chose, or ended.
	since time.Time
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
	return &crowd{
		stakes: map[types.UID]stake{}, of: map[string]int{}, proofs: map[types.UID]proof{}, gaveUpAt: map[types.UID]time.Time{},
		leftAt:  map[string]time.Time{},
		hungers: map[types.UID]hunger{}, since: time.Now(),
	}
}

// chooseBackends chooses the backends of a Service, and notes which nodes they are. It returns the other Services that may have to choose
// anew.
func (r *Reconciler) chooseBackends(svc *corev1.Service, known state, in Inputs) (choice backend.Choice, wakes []types.NamespacedName) {
	input, room := known.balancer.Backends(in), known.balancer.Room(in)
	product, ready := known.engine.Product(), readyOf(input)
	r.crowds.mu.Lock()
	defer r.crowds.mu.Unlock()
	crowd := r.countedCrowd(known.engine)
	before := crowd.stakes[svc.UID]
	crowd.giveUp(svc.UID)
	delete(crowd.absent, svc.UID) // it does not wait for itself
	each, on := product.attachmentsOf(svc), sharedOn(product, svc, known.balancer, in.Params)
	r.know(product, crowd, svc.UID, room, each, on)
	wanted := r.choiceInput(product, crowd, in, ready, each, on)
	wanted.Room, wanted.Size = room, before.size
	wanted.Crowd.Soon = crowd.settlesSoon(svc, known.balancer)
	paused := r.opts.pausedBy(svc) != ""
	wanted.Crowd.Lack.Rests = crowd.rests(svc.UID, paused)
	choice = crowd.noted(svc.UID, backend.Choose(input, wanted), paused)
	after := stakeOf(svc, input, choice, each, on)
	if paused {
		after = after.idle(crowd.proofs[svc.UID])
	}
	crowd.hold(svc.UID, after)
	if input.UsesAllNodes() {
		crowd.nodes, crowd.shares = len(ready), wanted.Crowd.Shares
	}
	crowd.waits = crowd.waits || !wanted.Crowd.Settled && waitsFor(choice)
	if r.crowdingChanged(product, crowd) || wanted.Crowd.Settled && after.many && !before.many {
		return choice, crowd.others(svc.UID)
	}
	return choice, crowd.concerned(before, after, wanted.Crowd.Settled)
}

// chooseLeft chooses the backends of a Service on a load balancer that it leaves, and notes nothing: others count with what it has at its
// new place.
func (r *Reconciler) chooseLeft(svc *corev1.Service, engine Engine, left Balancer, in Inputs) backend.Choice {
	input, room := left.Backends(in), left.Room(in)
	product, ready := engine.Product(), readyOf(input)
	r.crowds.mu.Lock()
	defer r.crowds.mu.Unlock()
	wanted := r.choiceInput(product, r.countedCrowd(engine), in, ready, product.attachmentsOf(svc), sharedOn(product, svc, left, in.Params))
	wanted.Room, wanted.Crowd.Lack.Rests = room, true
	return backend.Choose(input, wanted)
}

// readyOf are the nodes among which a Service chooses.
func readyOf(input backend.Input) []*backend.Node {
	if input.Pods {
		return nil
	}
	return input.Ready()
}

// choiceInput returns what the choice of a Service depends on, as far as that is the same on all its load balancers. The caller holds the
// lock.
func (r *Reconciler) choiceInput(product Product, crowd *crowd, in Inputs, ready []*backend.Node, each int, on string) backend.ChoiceInput {
	seen := r.seen(product, crowd, in.Params.Get(annotation.BackendLabel), len(ready), each, on)
	seen.Shares = backend.Shares(ready, seen.Quota, seen.Units, seen.Refused)
	return backend.ChoiceInput{Service: in.Service.UID, Subset: r.subsetFor(in.Params.Get(annotation.BackendSubset)), Crowd: seen}
}

// noted notes that a Service gives up a node, and since when it has none. It returns the choice: only if that has lasted, others give up
// nodes for it.
func (c *crowd) noted(svc types.UID, choice backend.Choice, paused bool) backend.Choice {
	if choice.GivesUp {
		c.gaveUpAt[svc] = time.Now()
	}
	if !c.starvesLong(svc, !paused && len(choice.Starving) > 0) {
		choice.Starving = nil
	}
	return choice
}

// rests reports whether a Service gives up no node for another one now.
func (c *crowd) rests(svc types.UID, paused bool) bool {
	return paused || time.Since(c.gaveUpAt[svc]) < giveUpWait
}

// waitsFor reports whether a Service that has chosen waits for nodes.
func waitsFor(choice backend.Choice) bool { return choice.Waits || len(choice.Lacking) > 0 }

// countedCrowd returns the Services of a product, counted as they are now. The caller holds the lock.
func (r *Reconciler) countedCrowd(engine Engine) *crowd {
	c := &r.crowds
	generation, found := c.generation.Load(), c.crowdOf(engine)
	if !c.followed.Load() || found.countedAt != generation || len(found.counted.services) == 0 {
		r.recount(found, engine, generation)
	}
	return found
}

// crowdingChanged reports whether how much of the nodes each Service may have has changed since the Services were last woken for that.
func (r *Reconciler) crowdingChanged(product Product, crowd *crowd) bool {
	now := backend.Crowd{Quota: r.quotaOf(product, crowd), Shares: crowd.shares, Units: crowd.units("", crowd.nodes)}.Crowding()
	crowd.differs = crowd.differs || len(crowd.stakes) > 1 && now != crowd.before
	crowd.before = now
	if !crowd.settled() {
		return false // the last one of them reports it
	}
	changed := now != crowd.woken || crowd.differs || crowd.waits
	crowd.woken, crowd.differs, crowd.waits = now, false, false
	return changed
}

// countDeployed notes what a Service has after its plan. If it has given nodes up, those that lack some choose anew.
func (r *Reconciler) countDeployed(svc *corev1.Service, balancer Balancer, in Inputs, engine Engine) {
	r.wakeAll(r.servicesToWake(svc, balancer, in, engine))
}

// servicesToWake notes what a Service has after its plan. If it has given nodes up, it returns the Services that lack some.
func (r *Reconciler) servicesToWake(svc *corev1.Service, balancer Balancer, in Inputs, engine Engine) []types.NamespacedName {
	input := balancer.Backends(in)
	choice := in.Choice
	choice.Room = balancer.Room(in)
	r.crowds.mu.Lock()
	defer r.crowds.mu.Unlock()
	product, crowd := engine.Product(), r.crowds.crowdOf(engine)
	each, on := product.attachmentsOf(svc), sharedOn(product, svc, balancer, in.Params)
	if product.Jobs { // those that remove backends are still under way
		if choice.Room.HasMore(crowd.proofs[svc.UID].of) {
			r.know(product, crowd, svc.UID, choice.Room, each, on)
		}
		return nil
	}
	before := crowd.stakes[svc.UID]
	crowd.giveUp(svc.UID)
	r.know(product, crowd, svc.UID, choice.Room, each, on)
	after := stakeOf(svc, input, choice, each, on)
	crowd.hold(svc.UID, after)
	return crowd.freed(before, after)
}

// know notes what a Service has in the cloud. Where that is more than was known when the cloud refused more, the quota is larger: calls of
// other Services were under way.
func (r *Reconciler) know(product Product, crowd *crowd, svc types.UID, room backend.Room, each int, on string) {
	if !crowd.know(svc, room, each, on) {
		return
	}
	for id := range crowd.proofs[svc].of {
		r.opts.Config.Quotas.Raise(product.AttachmentQuota, id, crowd.proven.times(id))
	}
}

// exhausted has what refusals of a pass of a Service show count for all.
func (r *Reconciler) exhausted(svc *corev1.Service, engine Engine, deployed Deployment) {
	if len(deployed.Exhausted)+len(deployed.Suspected) > 0 {
		r.wakeAll(r.learn(svc, engine, deployed))
	}
}

// learn notes which instances the cloud refused to let be backends once more in a pass of a Service: as many times as they are backends of
// the others at most. Calls of others may still be under way, or be refused as well: then each further refusal shows less. An instance that
// another Service has just left shows nothing: the cloud may have answered before. A suspected instance shows something only if it is a
// backend at least half as many times as its known quota allows: another quota may be used up.
//
// If there is a quota for all instances now, it returns the other Services: those that wait to make calls choose anew before they do.
func (r *Reconciler) learn(svc *corev1.Service, engine Engine, deployed Deployment) []types.NamespacedName {
	r.crowds.mu.Lock()
	defer r.crowds.mu.Unlock()
	product, crowd := engine.Product(), r.crowds.crowdOf(engine)
	before, limit := r.quotaOf(product, crowd), r.opts.Config.Quotas.Limit(product.AttachmentQuota).Value
	held := crowd.stakes[svc.UID]
	crowd.giveUp(svc.UID)
	instanceIDs := slices.Concat(deployed.Exhausted, slices.DeleteFunc(slices.Clone(deployed.Suspected), func(id string) bool {
		return 2*crowd.attached.times(id) < limit
	}))
	for _, id := range instanceIDs {
		if time.Since(crowd.leftAt[id]) > justLeft {
			r.opts.Config.Quotas.Learn(product.AttachmentQuota, id, crowd.attached.times(id))
		}
	}
	crowd.hold(svc.UID, held.without(instanceIDs))
	if before == r.quotaOf(product, crowd) {
		return nil
	}
	return crowd.others(svc.UID)
}

// subsetFor returns how many nodes a Service asks for: by the text of its annotation, else by the cloud-config.
func (r *Reconciler) subsetFor(text string) backend.Subset {
	if wanted, ok := backend.ParseSubset(text); ok {
		return wanted
	}
	return r.opts.Config.BackendSubset
}

// quotaOf returns how many times an instance may be a backend of a product, 0 for any number. A quota that is only assumed is larger if an
// instance is one more times than that: it allows any number until the cloud refuses some instance, which is the end for all of them.
// Otherwise, each Service would try each instance.
func (r *Reconciler) quotaOf(product Product, crowd *crowd) int {
	limit := r.opts.Config.Quotas.Limit(product.AttachmentQuota)
	if !limit.Assumed {
		return limit.Value
	}
	if proven := crowd.mostProven(); proven > limit.Value {
		if len(r.opts.Config.Quotas.Refused(product.AttachmentQuota)) > 0 {
			return proven
		}
		return 0
	}
	return limit.Value
}

// units is how many times each of n nodes becomes a backend that a Service with these labels selects. Before it is known what every Service
// has, one whose pods determine the backends may have all nodes: a Service that has some nodes does not take others that it would have to
// give back.
func (c *crowd) units(selector string, n int) int {
	units := c.counted.of(selector, n, c.locals.among(n, c.nodes))
	if c.settled() {
		return units
	}
	return units + max(c.counted.local-c.locals.services, 0)
}

// seen returns what the other Services make of n nodes that a Service selects, for which each node counts so many times, on a load balancer
// that it shares.
func (r *Reconciler) seen(product Product, c *crowd, selector string, n, each int, on string) backend.Crowd {
	quotas, most := r.opts.Config.Quotas, r.quotaOf(product, c)
	limit, refused := quotas.Limit(product.AttachmentQuota), quotas.Refused(product.AttachmentQuota)
	return backend.Crowd{
		Quota: most, Assumed: limit.Source == quota.Published && !confirmed(limit, refused), Refused: refused,
		Sure:  len(refused) == 0 && (most == 0 || c.counted.most() <= most),
		Units: c.units(selector, n), Each: each, Total: c.total + c.whole*n, Settled: c.settled(),
		Load: func(id string) int { return c.whole + c.of[id] }, Attached: func(id string) int {
			return c.attached.without(on, each, id)
		}, Least: c.leastOf,
		Lack: c.lacked(on),
	}
}

// confirmed reports whether the cloud has refused an instance that had as many as an assumed quota allows: the quota is that of all
// instances.
func confirmed(limit quota.Limit, refused map[string]int) bool {
	for _, has := range refused {
		if has >= limit.Value {
			return true
		}
	}
	return false
}

// leastOf returns the least load of nodes, or a smaller one that an instance has which the Service leaves. All nodes are counted only after
// a change: mostly a Service chooses what it has.
func (c *crowd) leastOf(nodes []*backend.Node) int {
	if len(nodes) == 0 {
		return 0
	}
	if at := c.leastAt; at.version != c.version || at.first != &nodes[0] || at.n != len(nodes) {
		had := c.chooses.times()
		c.least = math.MaxInt
		for _, node := range nodes {
			c.least = min(c.least, c.of[node.InstanceID]+had[node.InstanceID])
		}
		c.leastAt.version, c.leastAt.first, c.leastAt.n = c.version, &nodes[0], len(nodes)
	}
	least := c.least
	for _, id := range c.chooses.ids {
		least = min(least, c.of[id])
	}
	return c.whole + least
}

// leaveCrowd has the other Services take what a Service had that is gone.
func (r *Reconciler) leaveCrowd(uid types.UID) { r.wakeAll(r.leaves(uid)) }

// leaves forgets what a Service had. It returns the Services that may have to choose anew.
func (r *Reconciler) leaves(uid types.UID) (wakes []types.NamespacedName) {
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
		changed := false
		if crowd.woken.Crowded {
			r.recount(crowd, engine, generation)
			changed = r.crowdingChanged(engine.Product(), crowd)
		}
		if changed || crowd.lack.misses > 0 {
			wakes = append(wakes, crowd.others(uid)...)
		}
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
