package service

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/backend"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
)

// stake is what one Service has.
type stake struct {
	service types.NamespacedName
	// whole says all nodes. Otherwise ids are the instances.
	whole bool
	ids   []string
	each  int
	// on is the load balancer that the Service shares with others, empty for one of its own.
	on string
	// firm says that nobody chooses which nodes the Service has: it does not give any up.
	firm bool
	// local says that pods determine which nodes the Service has.
	local bool
	// leaving are those of the instances that the Service has given up and still has, lacking others that it needs and cannot have. many says
	// that it has fewer than half of what it needs, misses that it would have more nodes if it could, and spares that it has more than it
	// needs.
	leaving, lacking     []string
	many, misses, spares bool
	// starving are those of lacking of which the Service needs one, because it has no node. yields says that it can do without one for the
	// sake of such a Service.
	starving []string
	yields   bool
	// size is [backend.Choice.Size].
	size int
	// chosenAt is when the Service has chosen. missedAt is when a pass has ended since in which it has not, zero for none, and idles says that
	// it is idle for that, or paused.
	chosenAt, missedAt time.Time
	idles              bool
}

// proof is the instances that one Service is known to have, with in how many groups it has each of them. For the quota, an instance counts
// each times at most.
type proof struct {
	of   map[string]int
	each int
	on   string
}

// stakeOf returns what a Service has with a choice: what it is to have, and what it has now. on is the load balancer that it shares, empty
// for one of its own.
func stakeOf(svc *corev1.Service, in backend.Input, choice backend.Choice, each int, on string) stake {
	held := stake{
		service: mark.ServiceName(svc), each: each, on: on, firm: choice.Firm, local: in.Local && !in.Pods, lacking: choice.Lacking,
		many: choice.LacksMany, misses: choice.Misses,
		spares: choice.Spares, starving: choice.Starving, yields: choice.Yields, size: choice.Size,
		chosenAt: time.Now(),
	}
	if held.ids = choice.InstanceIDs(in); held.ids == nil {
		held.whole = true
		return held
	}
	all := sets.New(held.ids...)
	for id := range choice.Room.Instances() {
		if !all.Has(id) {
			held.ids = append(held.ids, id)
			held.leaving = append(held.leaving, id)
		}
	}
	return held
}

// without returns what a Service has if it does not get some instances.
func (s stake) without(ids []string) stake {
	s.ids = slices.DeleteFunc(slices.Clone(s.ids), func(id string) bool { return slices.Contains(ids, id) })
	return s
}

// times returns how many times the Service has each of its instances.
func (s stake) times() map[string]int {
	times := make(map[string]int, len(s.ids))
	for _, id := range s.ids {
		times[id] = s.each
	}
	return times
}

// idle returns what a Service has that takes no other instances and gives none up, so that nobody waits for that: what it is known to have
// in the cloud.
func (s stake) idle(has proof) stake {
	s.whole, s.ids = false, slices.Sorted(maps.Keys(has.of))
	s.leaving, s.lacking, s.starving = nil, nil, nil
	s.many, s.misses, s.spares, s.yields = false, false, false, false
	s.idles = true
	return s
}

// hold notes what a Service has chosen, or has, after [crowd.giveUp].
func (c *crowd) hold(svc types.UID, held stake) {
	c.stakes[svc] = held
	delete(c.absent, svc)
	c.count(held, 1)
	if c.chooses.each != held.each || !slices.Equal(c.chooses.ids, held.ids) {
		c.version++
	}
	c.chooses = stake{}
}

// giveUp drops what a Service has, because it chooses anew. What it is known to have in the cloud stays.
func (c *crowd) giveUp(svc types.UID) {
	if held, ok := c.stakes[svc]; ok {
		delete(c.stakes, svc)
		c.count(held, -1)
		c.chooses = held
	}
}

// forget drops all that is known of a Service.
func (c *crowd) forget(svc types.UID) {
	c.giveUp(svc)
	c.chooses = stake{}
	c.version++
	delete(c.gaveUpAt, svc)
	delete(c.hungers, svc)
	if had, ok := c.proofs[svc]; ok {
		delete(c.proofs, svc)
		c.prove(had, -1)
		c.leave(had, nil)
	}
}

// know notes what a Service has in the cloud, and reports whether that has changed. Most passes change nothing, and allocate nothing here.
func (c *crowd) know(svc types.UID, room backend.Room, each int, on string) bool {
	had, ok := c.proofs[svc]
	if ok && had.each == each && had.on == on && room.Has(had.of) {
		return false
	}
	c.prove(had, -1)
	found := proof{room.Times(), each, on}
	c.proofs[svc] = found
	c.prove(found, 1)
	c.leave(had, found.of)
	return true
}

// leave notes which instances a Service no longer has.
func (c *crowd) leave(had proof, has map[string]int) {
	for id := range had.of {
		if has[id] == 0 {
			c.leftAt[id] = time.Now()
		}
	}
}

func (c *crowd) prove(of proof, by int) {
	c.provenMost = -1
	for id, groups := range of.of {
		c.proven.add(of.on, id, min(groups, of.each), by)
	}
}

// mostProven is how many times that instance is a backend for sure which is one the most often. Every pass asks, and few change it.
func (c *crowd) mostProven() int {
	if c.provenMost < 0 {
		_, c.provenMost = c.proven.most()
	}
	return c.provenMost
}

func (c *crowd) count(held stake, by int) {
	c.attached.count(held, by)
	c.locals.count(held, by)
	c.lack.count(held, by)
	if held.whole {
		c.whole += by * held.each
		return
	}
	for _, id := range held.ids {
		if c.of[id] += by * held.each; c.of[id] == 0 {
			delete(c.of, id)
		}
	}
	c.total += by * held.each * len(held.ids)
}

// firm is how many times instances are backends of Services that do not give any up.
func (c *crowd) firm() *attached {
	firm := &attached{}
	for _, held := range c.stakes {
		if held.firm {
			firm.count(held, 1)
		}
	}
	return firm
}
