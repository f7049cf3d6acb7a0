package slb

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/quota"
)

// TestPlacesBeforeTheCacheShowsThem: Services of a group get their places faster than the cache shows that they had a pass. The CLB that
// they fill is full for the next one all the same.
func TestPlacesBeforeTheCacheShowsThem(t *testing.T) {
	t.Parallel()
	const most = 2
	w := newWorldWith(t, cloud.Limits{ListenersPerLB: most})
	w.config.Quotas = quota.NewBook(map[string]int{string(quota.ListenersPerCLB): most})
	w.restart()
	threeNodes(w)
	for i, name := range []string{"web", "shop", "late"} {
		w.put(born(overflowing(grouped(name, "edge", int32(80+i))), int64(-i))) // the last one is the oldest
	}
	created := testkit.Must(w.kube.CoreV1().Services(metav1.NamespaceAll).List(t.Context(), metav1.ListOptions{}))(t).Items
	w.calls()
	for _, name := range []string{"web", "shop", "late"} {
		w.fillCache(slices.Clone(created))
		if _, err := w.Reconcile(t.Context(), w.get(name)); err != nil {
			t.Errorf("pass over %s: %v", name, err)
		}
	}
	wantOwners(t, w, map[string][]string{edgeCLB: {"tcp:80 web", "tcp:81 shop"}, edgeCLB + "+": {"tcp:82 late"}})
}
