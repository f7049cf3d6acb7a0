package service

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/backend"
)

// TestLeastLoad compares the least load, for which mostly nothing is counted, with a count of all nodes.
func TestLeastLoad(t *testing.T) {
	t.Parallel()
	const instances = 8
	rng := rand.New(rand.NewPCG(1, 2))
	c := newCrowd()
	nodes := make([]*backend.Node, instances-1) // an instance may have left
	for i := range nodes {
		nodes[i] = &backend.Node{InstanceID: fmt.Sprint("i-", i)}
	}
	check := func(step int) {
		t.Helper()
		least := c.whole + c.of[nodes[0].InstanceID]
		for _, node := range nodes {
			least = min(least, c.whole+c.of[node.InstanceID])
		}
		if found := c.leastOf(nodes); found != least && found != min(least, c.whole+c.of["i-7"]) {
			t.Fatalf("step %d: the least load is %d, want %d of %v", step, found, least, c.of)
		}
	}
	for step := range 5000 {
		svc := types.UID(fmt.Sprint(rng.IntN(6)))
		before := c.stakes[svc]
		if c.giveUp(svc); rng.IntN(4) > 0 {
			check(step)
		}
		switch rng.IntN(6) {
		case 0:
			c.hold(svc, stake{whole: true, each: 1})
		case 1, 2:
			held := stake{each: 1 + rng.IntN(2)}
			for i := range instances {
				if rng.IntN(2) == 0 {
					held.ids = append(held.ids, fmt.Sprint("i-", i))
				}
			}
			c.hold(svc, held)
		case 3:
			c.forget(svc)
		default:
			c.hold(svc, before)
		}
		if rng.IntN(3) > 0 {
			check(step)
		}
	}
}
