package service

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/backend"
)

// stake is what one Service has.
type stake struct {
	// whole says all nodes. Otherwise ids are the instances.
	whole bool
	ids   []string
	each  int
	// on is the load balancer that the Service shares with others, empty for one of its own.
	on string
	// firm says that nobody chooses which nodes the Service has: it does not give any up.
	firm bool
	// local says that pods determine which nodes the Service has, refused are those of them that the cloud did not let become backends the last time.
	local   bool
	refused []string
}

// proof is the instances that one Service is known to have, with in how many groups it has each of them. For the quota, an instance counts each times at most.
type proof struct {
	of   map[string]int
	each int
	on   string
}

// stakeOf returns what a Service has with a choice: what it is to have, and what it has now. on is the load balancer that it shares, empty for one of its own.
// What the cloud refused to a Service whose pods determine the backends counts as well: others have to leave it.
func stakeOf(in backend.Input, choice backend.Choice, each int, on string, refused []string) stake {
	ids := choice.InstanceIDs(in)
	if ids == nil {
		return stake{whole: true, each: each, on: on, firm: choice.Firm}
	}
	all := sets.New(ids...)
	for id := range choice.Room.Instances() {
		if !all.Has(id) {
			ids = append(ids, id)
		}
	}
	held := stake{ids: ids, each: each, on: on, firm: choice.Firm}
	if in.Local && !in.Pods {
		held.local = true
		return held.withRefused(refused)
	}
	return held
}

// withRefused returns what a Service has with further instances that the cloud refused.
func (s stake) withRefused(ids []string) stake {
	for _, id := range ids {
		if !slices.Contains(s.ids, id) {
			s.ids, s.refused = append(s.ids, id), append(s.refused, id)
		}
	}
	return s
}

// withoutRefused returns what the Service has of that.
func (s stake) withoutRefused() stake {
	s.ids, s.refused = s.ids[:len(s.ids)-len(s.refused):len(s.ids)-len(s.refused)], nil
	return s
}

func (c *crowd) hold(svc types.UID, held stake) {
	c.stakes[svc] = held
	c.count(held, 1)
}

// giveUp drops what a Service has, because it chooses anew. What it is known to have in the cloud stays.
func (c *crowd) giveUp(svc types.UID) {
	if held, ok := c.stakes[svc]; ok {
		delete(c.stakes, svc)
		c.count(held, -1)
	}
}

// forget drops all that is known of a Service.
func (c *crowd) forget(svc types.UID) {
	c.giveUp(svc)
	if had, ok := c.proofs[svc]; ok {
		delete(c.proofs, svc)
		c.prove(had, -1)
	}
}

// know notes what a Service has in the cloud. Most passes change nothing, and allocate nothing here.
func (c *crowd) know(svc types.UID, room backend.Room, each int, on string) {
	had, ok := c.proofs[svc]
	if ok && had.each == each && had.on == on && room.Has(had.of) {
		return
	}
	c.prove(had, -1)
	found := proof{room.Times(), each, on}
	c.proofs[svc] = found
	c.prove(found, 1)
}

func (c *crowd) prove(of proof, by int) {
	for id, groups := range of.of {
		c.proven.add(of.on, id, min(groups, of.each), by)
	}
}

func (c *crowd) count(held stake, by int) {
	c.version++
	c.attached.count(held, by)
	c.locals.count(held, by)
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
