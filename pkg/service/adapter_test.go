package service

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cloud-provider/api"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
)

// TestAdapterDoesNotWaitForSlices: backends that are not in the cache yet must not leave the load balancer.
func TestAdapterDoesNotWaitForSlices(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		clb := newProduct("clb")
		f := newFrame(t, []driver.Engine{clb})
		adapter, svc := NewLoadBalancer(f.Reconciler), testService("web")
		_, err := adapter.EnsureLoadBalancer(t.Context(), "", svc, nil)
		var retry *api.RetryError
		if !errors.As(err, &retry) || len(clb.since()) != 0 {
			t.Errorf("error %v while nothing is in the cache, want one that names a time", err)
		}
		time.AfterFunc(5*time.Second, func() { f.factory.Start(t.Context().Done()) })
		begun := time.Now()
		if _, err := adapter.EnsureLoadBalancer(t.Context(), "", svc, nil); err != nil || time.Since(begun) < 5*time.Second {
			t.Errorf("%v after %s, want success once the caches are filled", err, time.Since(begun))
		}
	})
}

// TestAdapterForgetsServices: nothing is kept of a Service that is gone, whether or not it was torn down.
func TestAdapterForgetsServices(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		clb := newProduct("clb")
		f := newFrame(t, []driver.Engine{clb})
		adapter := NewLoadBalancer(f.Reconciler)
		f.factory.Start(t.Context().Done())
		for _, name := range []string{"removed", "left"} {
			f.put(testService(name))
			_, err := adapter.EnsureLoadBalancer(t.Context(), "", f.get(name), nil)
			testkit.Check(t, err)
		}
		removed := f.get("removed")
		now := metav1.Now()
		removed.DeletionTimestamp = &now
		testkit.Check(t, adapter.EnsureLoadBalancerDeleted(t.Context(), "", removed))
		for _, name := range []string{"removed", "left"} {
			testkit.Check(t, f.kube.CoreV1().Services(testkube.Namespace).Delete(t.Context(), name, metav1.DeleteOptions{}))
			f.rest()
		}
		if n := len(f.states.byKey); n != 0 || len(clb.forgot) == 0 {
			t.Errorf("%d states are kept, and the engine has forgotten %v", n, clb.forgot)
		}
		testkit.Check(t, adapter.EnsureLoadBalancerDeleted(t.Context(), "", removed)) // the stock controller may ask again
		if n := len(f.states.byKey); n != 0 {
			t.Errorf("%d states are kept after a deletion that came late", n)
		}
	})
}
