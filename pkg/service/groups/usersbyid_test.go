package groups

import (
	"context"
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
)

// where answers whether Services stay where they are.
type where struct {
	Cloud[struct{}]

	stays bool
	err   error
}

// Stays implements Cloud.
func (w *where) Stays(context.Context, *corev1.Service, string) (bool, error) { return w.stays, w.err }

// TestProveAway: a Service that names a load balancer is away from it once it is seen to stay elsewhere. An answer that says nothing
// changes nothing, and a refusal stops no removal: otherwise whoever can create Services could keep those of others.
func TestProveAway(t *testing.T) {
	t.Parallel()
	const finalizer = "test/finalizer"
	last, other := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "last", UID: "1"}}, &corev1.Service{ObjectMeta: metav1.ObjectMeta{
		Name: "other", UID: "2", Finalizers: []string{finalizer}, Labels: map[string]string{driver.LabelLoadBalancerID: "lb-other"},
		Annotations: map[string]string{annotation.LoadBalancerID.Key(): "lb-group"},
	}}
	services := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	for _, svc := range []*corev1.Service{last, other} {
		if err := services.Add(svc); err != nil {
			t.Fatal(err)
		}
	}
	cloud := &where{}
	g := &Groups[struct{}]{Cloud: cloud, Product: driver.Product{Finalizer: finalizer}, Services: corelisters.NewServiceLister(services)}
	for _, step := range []struct {
		name  string
		stays bool
		err   error
		fails bool
		away  bool
	}{
		{name: "may get there"},
		{name: "stays", stays: true, away: true},
		{name: "no answer", err: &alicloud.Error{}, fails: true, away: true},
		{name: "throttled", err: &alicloud.Error{Code: "Throttling.User", Status: http.StatusBadRequest}, fails: true, away: true},
		{name: "refused", err: &alicloud.Error{Code: "Forbidden.RAM", Status: http.StatusForbidden}},
	} {
		cloud.stays, cloud.err = step.stays, step.err
		if err := g.proveAway(t.Context(), last, "lb-group"); (err != nil) != step.fails {
			t.Errorf("%s: error %v", step.name, err)
		}
		if away := g.isAway(other, "lb-group"); away != step.away {
			t.Errorf("%s: away %v", step.name, away)
		}
	}
}
