package service

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// TestTwoProducts: two products stand side by side, and the class alone says which one serves a Service. A Service whose class goes with
// its type is torn down by the product that has it.
func TestTwoProducts(t *testing.T) {
	t.Parallel()
	clb, nlb := newProduct("clb"), newProduct("nlb")
	inFrame(t, []driver.Engine{clb, nlb}, func(t *testing.T, f *frame) {
		f.put(testService("plain"))
		f.put(testService("first", testkube.Class(clb.class())))
		f.put(testService("second", testkube.Class(nlb.class())))
		f.put(testService("foreign", testkube.Class("example.com/other")))
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
		if id, _ := nlb.of("second"); id != "" || f.opts.hasFinalizer(f.get("second")) {
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
				inFrame(t, []driver.Engine{products["clb"], products["nlb"]}, func(t *testing.T, f *frame) {
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

// TestTypeAnnotationSelectsAProduct: with the feature gate, the annotation gives a Service without a class its product. Removing it tears
// down what the product has. Adding it moves nothing that carries traffic, and another value leaves the Service to somebody else.
func TestTypeAnnotationSelectsAProduct(t *testing.T) {
	t.Parallel()
	clb, nlb := newProduct("clb"), newProduct("nlb")
	typed := func(kind string) func(*corev1.Service) {
		return func(svc *corev1.Service) {
			metav1.SetMetaDataAnnotation(&svc.ObjectMeta, annotation.Prefixes[1]+string(annotation.Type), kind)
		}
	}
	untyped := func(svc *corev1.Service) { clear(svc.Annotations) }
	synctest.Test(t, func(t *testing.T) {
		f := newFrame(t, []driver.Engine{clb, nlb})
		f.with = func(o *Options) { o.Config.TypeAnnotation = true }
		f.open(f.opts.Engines)
		f.start()
		defer func() { f.stop() }()
		on := func(stage, want string) {
			t.Helper()
			fromCLB, _ := clb.of("web")
			fromNLB, _ := nlb.of("web")
			if got, _, _ := strings.Cut(fromCLB+fromNLB, "-"); got != want {
				t.Errorf("%s: the Service is on %q and %q, want %q", stage, fromCLB, fromNLB, want)
			}
		}
		f.put(testService("web", typed(" nlb ")))
		on("created with the annotation", "nlb")
		if events := withReason(f.events(), problem.ReasonAnnotationNoEffect); len(events) != 0 {
			t.Errorf("events %q, want none about the annotation", events)
		}
		f.change("web", untyped)
		on("the annotation is gone", "clb")
		f.events()
		f.change("web", typed("nlb"))
		f.change("web", setPort(81))
		on("the annotation is back", "clb")
		if _, ports := clb.of("web"); !slices.Equal(ports, []int32{81}) {
			t.Errorf("ports %v, want 81: the product that has the Service serves it", ports)
		}
		if events := withReason(f.events(), problem.ReasonAnnotationNoEffect); len(events) != 1 || !strings.Contains(events[0], "has a CLB") {
			t.Errorf("events %q, want one", events)
		}
		f.change("web", func(svc *corev1.Service) { svc.Spec.Type = corev1.ServiceTypeClusterIP })
		on("no load balancer", "")
		f.change("web", func(svc *corev1.Service) { svc.Spec.Type = corev1.ServiceTypeLoadBalancer })
		on("a load balancer again", "nlb")
		f.change("web", typed("somebody"))
		f.change("web", setPort(82))
		on("left to somebody else", "nlb")
		if _, ports := nlb.of("web"); !slices.Equal(ports, []int32{81}) {
			t.Errorf("ports %v, want 81: the Service is somebody else's", ports)
		}
	})
}

// TestProductsServedElsewhere: a Service that has a load balancer of a product that this program does not serve is left alone, whatever
// becomes of it; so is one that asks for one.
func TestProductsServedElsewhere(t *testing.T) {
	t.Parallel()
	clb, nlb := newProduct("clb"), newProduct("nlb")
	has := func(svc *corev1.Service) { svc.Finalizers = []string{nlb.finalizer()} }
	deleted := metav1.Now()
	synctest.Test(t, func(t *testing.T) {
		f := newFrame(t, []driver.Engine{clb})
		f.with = func(o *Options) { o.Elsewhere = []driver.Product{nlb.Product()} }
		f.open(f.opts.Engines)
		f.start()
		defer func() { f.stop() }()
		f.put(testService("asks", testkube.Class(nlb.class())))
		f.put(testService("has", testkube.Class(nlb.class()), has))
		f.put(testService("had", has)) // its class went with its type
		f.put(testService("goes", has, func(svc *corev1.Service) { svc.DeletionTimestamp = &deleted }))
		f.put(testService("unbalanced", has, func(svc *corev1.Service) { svc.Spec.Type = corev1.ServiceTypeClusterIP }))
		before := map[string]*corev1.Service{}
		for _, name := range []string{"asks", "has", "had", "goes", "unbalanced"} {
			before[name] = f.get(name)
		}
		time.Sleep(time.Hour)
		for name, svc := range before {
			if diff := cmp.Diff(svc, f.get(name)); diff != "" {
				t.Errorf("Service %s was touched (-before +after):\n%s", name, diff)
			}
		}
		if calls := append(clb.since(), f.events()...); len(calls) != 0 {
			t.Errorf("calls and events %q, want none", calls)
		}
	})
}

// TestOneProductWithoutClassless: where only a product for Services of a class is served, one without a class has no load balancer.
func TestOneProductWithoutClassless(t *testing.T) {
	t.Parallel()
	nlb := newProduct("nlb")
	inFrame(t, []driver.Engine{nlb}, func(t *testing.T, f *frame) {
		f.put(testService("plain"))
		f.put(testService("second", testkube.Class(nlb.class())))
		plain, _ := nlb.of("plain")
		second, _ := nlb.of("second")
		if plain != "" || second == "" {
			t.Errorf("load balancers %q and %q, want one of the Service with the class alone", plain, second)
		}
	})
}

// TestPreviewOfAClassChange: the first plan for a Service whose class has changed removes it by the product that has it, and says that
// further steps follow: the other product makes it then.
func TestPreviewOfAClassChange(t *testing.T) {
	t.Parallel()
	clb, nlb := newProduct("clb"), newProduct("nlb")
	f := newFrame(t, []driver.Engine{clb, nlb})
	nlb.set("nlb-1", "web", 80)
	changed := testService("web", testkube.Class(clb.class()), func(svc *corev1.Service) { svc.Finalizers = []string{nlb.finalizer()} })
	previews, err := f.PreviewAll(t.Context(), []*corev1.Service{changed})
	testkit.Check(t, err)
	if planned := previews[0]; len(planned.Steps) != 1 || planned.Follow == "" || planned.Err != nil {
		t.Errorf("preview %+v, want the step that removes the Service from nlb-1, and that further ones follow", planned)
	}
	if calls := append(nlb.since(), clb.since()...); !slices.Equal(calls, []string{"read web"}) {
		t.Errorf("calls %v, want one read", calls)
	}
}
