package service

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
)

// TestTwoProducts: two products stand side by side, and the class alone says which one serves a Service. A Service whose class goes with its
// type is torn down by the product that has it.
func TestTwoProducts(t *testing.T) {
	t.Parallel()
	clb, nlb := newProduct("clb"), newProduct("nlb")
	inFrame(t, []Engine{clb, nlb}, func(t *testing.T, f *frame) {
		f.put(testService("plain"))
		f.put(testService("first", testkit.Class(clb.class())))
		f.put(testService("second", testkit.Class(nlb.class())))
		f.put(testService("foreign", testkit.Class("example.com/other")))
		for name, want := range map[string]string{"plain": "clb", "first": "clb", "second": "nlb", "foreign": ""} {
			fromCLB, _ := clb.of(name)
			fromNLB, _ := nlb.of(name)
			if got, _, _ := strings.Cut(fromCLB+fromNLB, "-"); got != want {
				t.Errorf("Service %s is on %q and %q, want %q", name, fromCLB, fromNLB, want)
			}
		}
		clb.since()
		nlb.since()
		f.change("second", setPort(81))
		if _, ports := nlb.of("second"); !slices.Equal(ports, []int32{81}) {
			t.Errorf("ports %v after a change, want 81", ports)
		}
		f.change("second", func(svc *corev1.Service) {
			svc.Spec.Type, svc.Spec.LoadBalancerClass = corev1.ServiceTypeClusterIP, nil // the API server takes the class away
		})
		if id, _ := nlb.of("second"); id != "" || f.opts.held(f.get("second")) {
			t.Errorf("load balancer %q, finalizers %v after the tear-down", id, f.get("second").Finalizers)
		}
		if calls := clb.since(); len(calls) != 0 {
			t.Errorf("calls %v of the other product, want none", calls)
		}
		f.change("second", func(svc *corev1.Service) { svc.Spec.Type = corev1.ServiceTypeLoadBalancer })
		if id, _ := clb.of("second"); id == "" {
			t.Error("the Service came back without a class, and has no load balancer of the first product")
		}
	})
}

// TestClassChangedBetweenPasses: a Service whose class changed between two passes is torn down by the product that has it before another
// product serves it, also if the program was started anew meanwhile and knows nothing but the Service.
func TestClassChangedBetweenPasses(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		from, to    string // classes, empty for none
		served      string // the product in the end, empty for none
		unbalanced  bool   // the Service is no load balancer any more
		wantRemoved string
	}{
		"to the other product":     {from: "example.com/clb", to: "example.com/nlb", served: "nlb", wantRemoved: "clb"},
		"from the other product":   {from: "example.com/nlb", to: "example.com/clb", served: "clb", wantRemoved: "nlb"},
		"to no class":              {from: "example.com/nlb", served: "clb", wantRemoved: "nlb"},
		"from no class":            {to: "example.com/nlb", served: "nlb", wantRemoved: "clb"},
		"to a foreign class":       {from: "example.com/nlb", to: "example.com/other", wantRemoved: "nlb"},
		"to no load balancer":      {from: "example.com/nlb", unbalanced: true, wantRemoved: "nlb"},
		"to the class that it had": {from: "", to: "example.com/clb", served: "clb"},
	} {
		for _, restart := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, restarted %t", name, restart), func(t *testing.T) {
				t.Parallel()
				products := map[string]*product{"clb": newProduct("clb"), "nlb": newProduct("nlb")}
				inFrame(t, []Engine{products["clb"], products["nlb"]}, func(t *testing.T, f *frame) {
					f.put(testService("web", withClass(row.from)))
					for _, product := range products {
						product.since()
					}
					if restart {
						f.stop()
					}
					f.change("web", func(svc *corev1.Service) {
						withClass(row.to)(svc)
						if row.unbalanced {
							svc.Spec.Type = corev1.ServiceTypeClusterIP
						}
					})
					if restart {
						f.again()
					}
					for name, product := range products {
						id, _ := product.of("web")
						if got, want := id != "", name == row.served; got != want {
							t.Errorf("%s: load balancer %q, want one: %t", name, id, want)
						}
						if got, want := slices.Contains(f.get("web").Finalizers, product.finalizer()), name == row.served; got != want {
							t.Errorf("%s: finalizer on the Service: %t, want %t", name, got, want)
						}
						if got, want := slices.Contains(product.since(), "remove web"), name == row.wantRemoved; got != want {
							t.Errorf("%s: removed: %t, want %t", name, got, want)
						}
					}
				})
			})
		}
	}
}

// withClass gives a Service a class, or none for an empty one.
func withClass(class string) func(*corev1.Service) {
	return func(svc *corev1.Service) {
		if svc.Spec.LoadBalancerClass = nil; class != "" {
			svc.Spec.LoadBalancerClass = &class
		}
	}
}

// TestPreviewOfAClassChange: what a pass over a Service writes whose class has changed is first the removal by the product that has it.
func TestPreviewOfAClassChange(t *testing.T) {
	t.Parallel()
	clb, nlb := newProduct("clb"), newProduct("nlb")
	f := newFrame(t, []Engine{clb, nlb})
	nlb.set("nlb-1", "web", 80)
	goal, err := f.Preview(t.Context(), testService("web", testkit.Class(clb.class()), func(svc *corev1.Service) {
		svc.Finalizers = []string{nlb.finalizer()}
	}))
	testkit.Check(t, err)
	if len(goal.Plan.Steps()) != 1 || len(clb.since()) != 0 || len(nlb.since()) == 0 {
		t.Errorf("steps %v, want the one that removes the Service from nlb-1, after a read of the NLB alone", goal.Plan.Steps())
	}
}
