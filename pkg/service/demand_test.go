package service

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/config"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/quota"
)

// TestDemandOfSharedLoadBalancers: a load balancer that Services share counts once for the nodes that these want together, and one of a
// group that has several counts as many times, once the Services show on which one they are.
func TestDemandOfSharedLoadBalancers(t *testing.T) {
	t.Parallel()
	grouped := func(changes ...func(*corev1.Service)) *corev1.Service {
		return testkube.Service("web", append(changes, testkube.Annotation(annotation.Group.Key(), "edge"))...)
	}
	subset := func(n int) func(*corev1.Service) {
		return testkube.Annotation(annotation.BackendSubset.Key(), fmt.Sprint(n))
	}
	byLabel := func(selector string) func(*corev1.Service) {
		return testkube.Annotation(annotation.BackendLabel.Key(), selector)
	}
	byID := func(id string) func(*corev1.Service) { return testkube.Annotation(annotation.LoadBalancerID.Key(), id) }
	on := func(id string) func(*corev1.Service) {
		return func(svc *corev1.Service) { svc.Labels = map[string]string{driver.LabelLoadBalancerID: id} }
	}
	var ten []*corev1.Service // ten load balancers, on each of which one Service wants all nodes, and one half of them
	for i := range 10 {
		id := fmt.Sprint("lb-", i)
		ten = append(ten, testkube.Service("all", byID(id)), testkube.Service("half", byID(id), subset(5)))
	}
	for name, test := range map[string]struct {
		services []*corev1.Service
		// selector is that of the Service for which the others count, want how many times each of ten nodes becomes a backend at most.
		selector string
		want     int
	}{
		"one of its own each":           {[]*corev1.Service{testkube.Service("a"), testkube.Service("b")}, "", 2},
		"a group":                       {[]*corev1.Service{grouped(), grouped(), grouped()}, "", 1},
		"several of a group":            {[]*corev1.Service{grouped(on("lb-1")), grouped(on("lb-2")), grouped(on("lb-2"))}, "", 2},
		"by ID, and the one of a group": {[]*corev1.Service{grouped(on("lb-1")), testkube.Service("web", byID("lb-1"), on("lb-1"))}, "", 1},
		"some nodes":                    {[]*corev1.Service{grouped(subset(2)), grouped(subset(3))}, "", 1},
		"some, all":                     {[]*corev1.Service{grouped(subset(1)), grouped(), grouped(subset(2))}, "", 1},
		"half, all, by ID":              {ten, "", 10},
		"some, labels":                  {[]*corev1.Service{grouped(subset(1)), grouped(byLabel("a=1"))}, "a=1", 2},
		"other labels":                  {[]*corev1.Service{grouped(byLabel("b=1")), grouped(byLabel("a=1"))}, "a=1", 1},
		"labels, for those without":     {[]*corev1.Service{grouped(byLabel("b=1")), grouped(byLabel("a=1"))}, "", 0},
	} {
		for range 20 { // the cache lists Services in any order
			if n := demandOf(t, test.services).unitsFor(test.selector, 10); n != test.want {
				t.Errorf("%s: each node becomes a backend %d times, want %d", name, n, test.want)
				break
			}
		}
	}
}

func demandOf(t *testing.T, services []*corev1.Service) demand {
	t.Helper()
	informer := informers.NewSharedInformerFactory(testkube.NewClientset(), 0).Core().V1().Services()
	for i, svc := range services {
		svc = svc.DeepCopy()
		svc.Name, svc.UID = fmt.Sprint("web-", i), types.UID(fmt.Sprint(i))
		testkit.Check(t, informer.Informer().GetIndexer().Add(svc))
	}
	engine := &classlessProduct{newProduct("sharing")}
	r := &Reconciler{opts: Options{Engines: []driver.Engine{engine}, Services: informer, Config: config.Config{Quotas: quota.NewBook(nil)}}}
	return r.countDemand(engine)
}

// classlessProduct is one that Services without a class have.
type classlessProduct struct{ *product }

func (p *classlessProduct) Product() driver.Product {
	return driver.Product{Name: "A", Classless: true}
}
