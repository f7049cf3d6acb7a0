package service

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

// TestInstancesOfSharedLoadBalancersCountOnce: an instance is behind a load balancer once, however many of the Services that share it have
// the instance.
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
		if a, b, other := c.attached.times("a"), c.attached.times("b"), c.attached.times(anyInstance); a != step.a || b != step.b ||
			other != step.other {
			t.Errorf("%s: a counts %d times, b %d and others %d; want %d, %d and %d", step.name, a, b, other, step.a, step.b, step.other)
		}
	}
	c.hold("9", some("lb-1", "a"))
	if with, without := c.attached.without("lb-1", 1, "a"), c.attached.without("lb-2", 1, "b"); with != c.attached.times("a")-1 ||
		without != c.attached.times("b") {
		t.Errorf("a counts %d times without lb-1, and b %d without lb-2", with, without)
	}
}

// TestSparedInstances: an instance that several Services have on a load balancer is spared by none of them, because it remains behind the
// load balancer.
func TestSparedInstances(t *testing.T) {
	t.Parallel()
	some := func(on string, ids ...string) stake { return stake{ids: ids, each: 1, on: on, spares: true} }
	all := func(on string) stake { return stake{whole: true, each: 1, on: on, spares: true} }
	needs := some("lb-1", "a")
	needs.spares = false
	for name, test := range map[string]struct {
		stakes []stake
		// a and b are how many times the Services spare these instances, other is the same of all others.
		a, b, other int
	}{
		"of their own":                      {[]stake{some("", "a", "b"), some("", "a")}, 2, 1, 0},
		"one of two on a load balancer":     {[]stake{some("lb-1", "a", "b"), some("lb-1", "b")}, 1, 0, 0},
		"beside one that needs it":          {[]stake{some("lb-1", "a", "b"), needs}, 0, 1, 0},
		"on different load balancers":       {[]stake{some("lb-1", "a", "b"), some("lb-2", "b")}, 1, 2, 0},
		"all nodes":                         {[]stake{all(""), all("lb-1")}, 2, 2, 2},
		"all nodes of two on one":           {[]stake{all("lb-1"), all("lb-1")}, 0, 0, 0},
		"all nodes and some on one":         {[]stake{all("lb-1"), some("lb-1", "a")}, 0, 1, 1},
		"all nodes and some, and elsewhere": {[]stake{all("lb-1"), some("lb-1", "a"), some("", "a")}, 1, 1, 1},
	} {
		c := newCrowd()
		for i, held := range test.stakes {
			c.hold(types.UID(rune('1'+i)), held)
		}
		spared := c.spared(false)
		if a, b, other := spared("a"), spared("b"), spared("c"); a != test.a || b != test.b || other != test.other {
			t.Errorf("%s: a is spared %d times, b %d and others %d; want %d, %d and %d", name, a, b, other, test.a, test.b, test.other)
		}
	}
}
