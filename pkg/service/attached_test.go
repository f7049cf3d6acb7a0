package service

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

// TestInstancesOfSharedLoadBalancersCountOnce: an instance is behind a load balancer once, however many of the Services that share it have the instance.
func TestInstancesOfSharedLoadBalancersCountOnce(t *testing.T) {
	t.Parallel()
	c := newCrowd()
	some := func(on string, ids ...string) stake { return stake{ids: ids, each: 1, on: on} }
	all := func(on string) stake { return stake{whole: true, each: 1, on: on} }
	for _, step := range []struct {
		name string
		svc  types.UID
		has  *stake
		// a and b are how many times these instances count, other is the same of all others.
		a, b, other int
	}{
		{"of its own", "1", new(some("", "a", "b")), 1, 1, 0},
		{"the first one of a load balancer", "2", new(some("lb-1", "a")), 2, 1, 0},
		{"the second one there", "3", new(some("lb-1", "a", "b")), 2, 2, 0},
		{"the third one there", "4", new(some("lb-1", "a")), 2, 2, 0},
		{"one elsewhere", "5", new(some("lb-2", "a")), 3, 2, 0},
		{"all nodes", "6", new(all("lb-3")), 4, 3, 1},
		{"all nodes again", "7", new(all("lb-3")), 4, 3, 1},
		{"all nodes elsewhere", "8", new(all("")), 5, 4, 2},
		{"without one of two with all nodes", "6", nil, 5, 4, 2},
		{"without both", "7", nil, 4, 3, 1},
		{"without the first one", "2", nil, 4, 3, 1},
		{"the third one changes", "4", new(some("lb-1", "b")), 4, 3, 1},
		{"without the second one", "3", nil, 3, 3, 1},
		{"without the third one", "4", nil, 3, 2, 1},
		{"one where others will have all nodes", "2", new(some("lb-3", "a")), 4, 2, 1},
		{"all nodes beside it", "6", new(all("lb-3")), 4, 3, 2},
		{"all nodes again beside it", "7", new(all("lb-3")), 4, 3, 2},
		{"another one beside all nodes", "3", new(some("lb-3", "a", "b")), 4, 3, 2},
		{"without one of two with all nodes beside others", "6", nil, 4, 3, 2},
		{"without the first one beside all nodes", "2", nil, 4, 3, 2},
		{"without all nodes beside another one", "7", nil, 4, 3, 1},
		{"without the other one", "3", nil, 3, 2, 1},
	} {
		c.forget(step.svc)
		if step.has != nil {
			c.hold(step.svc, *step.has)
		}
		if a, b, other := c.attached.times("a"), c.attached.times("b"), c.attached.times(anyInstance); a != step.a || b != step.b || other != step.other {
			t.Errorf("%s: a counts %d times, b %d and others %d; want %d, %d and %d", step.name, a, b, other, step.a, step.b, step.other)
		}
	}
	c.hold("9", some("lb-1", "a"))
	if with, without := c.attached.without("lb-1", 1, "a"), c.attached.without("lb-2", 1, "b"); with != c.attached.times("a")-1 || without != c.attached.times("b") {
		t.Errorf("a counts %d times without lb-1, and b %d without lb-2", with, without)
	}
}
