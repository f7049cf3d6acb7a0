package service

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/config"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/quota"
)

// inGroup returns a Service of a group.
func inGroup(ports int, changes ...func(*corev1.Service)) *corev1.Service {
	change := []func(*corev1.Service){testkit.Annotation(annotation.Group.Key(), "edge")}
	for i := range ports {
		change = append(change, testkit.TCP(int32(80+i))) //nolint:gosec // ports
	}
	return testkit.Service("web", slices.Concat(change, changes)...)
}

func overflowing(svc *corev1.Service) {
	testkit.Annotation(annotation.GroupOverflow.Key(), "true")(svc)
}

func subset(n int) func(*corev1.Service) {
	return testkit.Annotation(annotation.BackendSubset.Key(), fmt.Sprint(n))
}

func byLabel(selector string) func(*corev1.Service) {
	return testkit.Annotation(annotation.BackendLabel.Key(), selector)
}

// TestDemandOfSharedLoadBalancers: a group whose Services may overflow counts for as many load balancers as its listeners need, and each of
// them for the nodes that its Services want together, in any order of these.
func TestDemandOfSharedLoadBalancers(t *testing.T) {
	t.Parallel()
	stays, overflows := inGroup(4), inGroup(2, overflowing)
	var byID []*corev1.Service // ten load balancers, on each of which one Service wants all nodes, and one half of them
	for i := range 10 {
		named := testkit.Annotation(annotation.LoadBalancerID.Key(), fmt.Sprint("lb-", i))
		byID = append(byID, testkit.Service("all", named), testkit.Service("half", named, subset(5)))
	}
	for _, test := range []struct {
		name      string
		listeners int
		services  []*corev1.Service
		// selector is that of the Service for which the others count, want how many times each of ten nodes becomes a backend at most.
		selector string
		want     int
	}{
		{"no overflow", 4, []*corev1.Service{stays, stays}, "", 1},
		{"one is enough", 4, []*corev1.Service{overflows, overflows}, "", 1},
		{"two are needed", 4, []*corev1.Service{overflows, overflows, overflows}, "", 2},
		{"three are needed", 2, []*corev1.Service{stays, overflows, overflows, overflows}, "", 3},
		{"any number of listeners", 0, []*corev1.Service{overflows, overflows, overflows}, "", 1},
		{"some nodes", 4, []*corev1.Service{inGroup(1, subset(2)), inGroup(1, subset(3))}, "", 1},
		{"some, all", 4, []*corev1.Service{inGroup(1, subset(1)), inGroup(1), inGroup(1, subset(2))}, "", 1},
		{"half, all, by ID", 4, byID, "", 10},
		{"some, labels", 4, []*corev1.Service{inGroup(1, subset(1)), inGroup(1, byLabel("a=1"))}, "a=1", 2},
		{"other labels", 4, []*corev1.Service{inGroup(1, byLabel("b=1")), inGroup(1, byLabel("a=1"))}, "a=1", 1},
		{"labels, for those without", 4, []*corev1.Service{inGroup(1, byLabel("b=1")), inGroup(1, byLabel("a=1"))}, "", 0},
		{"labels, all", 4, []*corev1.Service{inGroup(1, byLabel("a=1")), inGroup(1)}, "a=1", 1},
		{"some of two load balancers", 4, []*corev1.Service{inGroup(3, overflowing, subset(10)), inGroup(3, overflowing, subset(10))}, "", 2},
		{"more than there are", 4, []*corev1.Service{inGroup(1, subset(9)), inGroup(1, subset(9)), inGroup(1, subset(9))}, "", 1},
	} {
		for range 20 { // the cache lists Services in any order
			if n := demandOf(t, test.listeners, test.services).of(test.selector, 10, 0); n != test.want {
				t.Errorf("%s: each node becomes a backend %d times, want %d", test.name, n, test.want)
				break
			}
		}
	}
}

// demandOf counts Services that share load balancers of so many listeners.
func demandOf(t *testing.T, listeners int, services []*corev1.Service) demand {
	t.Helper()
	const code = "listeners"
	informer := informers.NewSharedInformerFactory(testkit.NewClientset(), 0).Core().V1().Services()
	for i, svc := range services {
		svc = svc.DeepCopy()
		record, _ := RecordOn(svc)
		svc.Name, svc.UID = fmt.Sprint("web-", i), types.UID(fmt.Sprint(i))
		record.storeChange()(svc)
		testkit.Check(t, informer.Informer().GetIndexer().Add(svc))
	}
	engine := &sharingProduct{newProduct("sharing"), code}
	r := &Reconciler{opts: Options{Engines: []Engine{engine}, Services: informer,
		Config: config.Config{Quotas: quota.NewBook(map[string]int{code: listeners})}}}
	return r.countDemand(engine)
}

// sharingProduct is one that Services without a class have.
type sharingProduct struct {
	*product

	listeners quota.Code
}

func (p *sharingProduct) Product() Product {
	return Product{Name: "A", Classless: true, ListenerQuota: p.listeners}
}

// on says that a Service is on a load balancer, and in a group with a Record of it.
func on(id string, inGroup bool) func(*corev1.Service) {
	return func(svc *corev1.Service) {
		svc.Labels = map[string]string{LabelLoadBalancerID: id}
		if inGroup {
			Record{LoadBalancerID: id, Group: mark.Group{ClusterID: "c-1", Namespace: svc.Namespace, Name: "edge"}.Mark()}.storeChange()(svc)
		}
	}
}

// TestDemandCountsStayingServiceWhereItIs: a Service that may not use the load balancer that it names stays where it is, and counts there.
func TestDemandCountsStayingServiceWhereItIs(t *testing.T) {
	t.Parallel()
	named := testkit.Annotation(annotation.LoadBalancerID.Key(), "lb-other")
	for name, test := range map[string]struct {
		services []*corev1.Service
		want     int
	}{
		"in its group": {[]*corev1.Service{inGroup(1, on("lb-1", true)), inGroup(1, on("lb-1", true), named)}, 1},
		"on an existing one": {[]*corev1.Service{testkit.Service("web", on("lb-1", false), named),
			testkit.Service("web", testkit.Annotation(annotation.LoadBalancerID.Key(), "lb-1"))}, 1},
		"it has moved":            {[]*corev1.Service{inGroup(1, on("lb-1", true)), inGroup(1, on("lb-other", false), named)}, 2},
		"it has no load balancer": {[]*corev1.Service{inGroup(1, on("lb-1", true)), inGroup(1, named)}, 2},
	} {
		if n := demandOf(t, 0, test.services).of("", 10, 0); n != test.want {
			t.Errorf("%s: each node becomes a backend %d times, want %d", name, n, test.want)
		}
	}
}

// TestDemandCountsGuestsWithTheirGroup: Services that name the load balancer of a group by its ID are on the same one as those of the
// group. A label alone does not prove that: a Service that is still on an existing load balancer is not on that of its group.
func TestDemandCountsGuestsWithTheirGroup(t *testing.T) {
	t.Parallel()
	guest := func(id string, changes ...func(*corev1.Service)) *corev1.Service {
		return testkit.Service("web", append(changes, testkit.Annotation(annotation.LoadBalancerID.Key(), id), on(id, false))...)
	}
	moving := inGroup(1, on("lb-1", true))
	moving.Labels[LabelLoadBalancerID] = "lb-old"
	for name, test := range map[string]struct {
		services []*corev1.Service
		want     int
	}{
		"all nodes":  {[]*corev1.Service{inGroup(1, on("lb-1", true)), guest("lb-1"), guest("lb-1")}, 1},
		"some nodes": {[]*corev1.Service{inGroup(1, on("lb-1", true), subset(6)), guest("lb-1", subset(6))}, 1},
		"several load balancers": {[]*corev1.Service{inGroup(1, on("lb-1", true)), inGroup(1, on("lb-2", true)), guest("lb-1"),
			guest("lb-2")}, 2},
		"another load balancer":            {[]*corev1.Service{inGroup(1, on("lb-1", true)), guest("lb-2")}, 2},
		"a Service that has not yet moved": {[]*corev1.Service{moving, guest("lb-old")}, 2},
	} {
		if n := demandOf(t, 0, test.services).of("", 10, 0); n != test.want {
			t.Errorf("%s: each node becomes a backend %d times, want %d", name, n, test.want)
		}
	}
}
