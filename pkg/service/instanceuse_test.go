package service

import (
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/waits"
)

// TestNobodyWaitsForEver: the Services wait for one that never chooses until a pass over it has ended, for a minute, and for 10 minutes at
// most. Once it is known what every Service has, a new one makes nobody wait.
func TestNobodyWaitsForEver(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		passed bool
		want   time.Duration
	}{
		"passes end":     {true, waits.UseKnown},
		"no pass begins": {false, waits.UseKnownAtLast},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := newProductUse()
				p.demand.services = sets.New[types.UID]("broken", "web")
				if test.passed {
					p.passed.Insert("broken")
				}
				time.Sleep(test.want - time.Second)
				if p.isKnown("web") {
					t.Errorf("nobody waits before %s", test.want)
				}
				time.Sleep(time.Second)
				if !p.isKnown("web") {
					t.Errorf("the Services still wait after %s", test.want)
				}
				p.demand.services.Insert("new")
				if !p.isKnown("web") {
					t.Error("the Services wait for a new one")
				}
			})
		})
	}
}

// TestInstancesOfSharedLoadBalancersCountOnce: for the quota, an instance is behind a load balancer once, whichever of the Services there
// have it.
func TestInstancesOfSharedLoadBalancersCountOnce(t *testing.T) {
	t.Parallel()
	p := newProductUse()
	p.putUse("own", serviceUse{chosen: []string{"a"}, each: 1})
	p.putUse("first", serviceUse{chosen: []string{"a", "b"}, each: 1, on: "lb-1"})
	p.putUse("second", serviceUse{chosen: []string{"b", "c"}, each: 1, on: "lb-1"})
	for id, want := range map[string]int{"a": 2, "b": 1, "c": 1} {
		if got := p.taken.of[id]; got != want {
			t.Errorf("%s counts %d times, want %d", id, got, want)
		}
	}
	if got := p.taken.usesByOthers("lb-1", "b", 1); got != 0 {
		t.Errorf("b costs another Service there %d, want nothing more", got)
	}
	if p.load["b"] != 2 {
		t.Errorf("b is one of %d Services, want both", p.load["b"])
	}
	p.dropUse("first")
	p.dropUse("second")
	p.dropUse("own")
	if len(p.taken.of)+len(p.taken.on)+len(p.load) > 0 {
		t.Errorf("%v, %v and %v are left", p.taken.of, p.taken.on, p.load)
	}
}

// TestRefusedInstance: an instance that the cloud has refused gets no further Service for an hour, unless one is gone, or the quota is
// another one.
func TestRefusedInstance(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newProductUse()
		p.putUse("web", serviceUse{chosen: []string{"a"}, each: 1})
		p.noteRefusal("a", 50)
		if got := p.refusedNow(50)["a"]; got != 1 {
			t.Errorf("it can be a backend %d times, want as often as it is one", got)
		}
		if len(p.refusedNow(60)) > 0 {
			t.Error("a refusal counts for another quota")
		}
		p.noteRefusal("b", 50) // nothing is known yet of the Service that has it
		p.putUse("blog", serviceUse{each: 1, chosen: []string{"b"}, observed: map[string]int{"b": 1}})
		if got := p.refusedNow(50)["b"]; got != 1 {
			t.Errorf("it can be a backend %d times, and is one once", got)
		}
		p.forget("blog")
		if _, refused := p.refusedNow(50)["b"]; refused {
			t.Error("a refusal counts although a Service is gone that had the instance")
		}
		p.noteRefusal("a", 50)
		if time.Sleep(waits.InstanceRefused); len(p.refusedNow(50)) > 0 {
			t.Error("a refusal counts after an hour")
		}
	})
}
