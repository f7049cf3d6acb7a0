package service

import (
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/backend"
)

// stake is what one Service has.
type stake struct {
	// whole says all nodes, proven that it is known to have them. Otherwise ids are the instances.
	whole, proven bool
	ids           []string
	each          int
	// on is the load balancer that the Service shares with others, empty for one of its own.
	on string
}

// stakeOf returns what a Service has with a choice: what it is to have, and what it has now. on is the load balancer that it shares, empty for one of its own.
func stakeOf(in backend.Input, choice backend.Choice, n, each int, on string) stake {
	ids := choice.InstanceIDs(in)
	if ids == nil {
		return stake{whole: true, proven: n > 0 && choice.Room.Full(n), each: each, on: on}
	}
	all := sets.New(ids...)
	for id := range choice.Room.Instances() {
		if !all.Has(id) {
			ids = append(ids, id)
		}
	}
	return stake{ids: ids, each: each, on: on}
}

func (c *crowd) hold(svc types.UID, held stake) {
	c.stakes[svc] = held
	c.count(held, 1)
}

func (c *crowd) forget(svc types.UID) {
	if held, ok := c.stakes[svc]; ok {
		delete(c.stakes, svc)
		c.count(held, -1)
	}
}

func (c *crowd) count(held stake, by int) {
	c.version++
	if held.whole {
		c.whole += by * held.each
		c.attached.add(held.on, anyInstance, held.each, by)
		return
	}
	for _, id := range held.ids {
		if c.of[id] += by * held.each; c.of[id] == 0 {
			delete(c.of, id)
		}
		c.attached.add(held.on, id, held.each, by)
	}
	c.total += by * held.each * len(held.ids)
}
