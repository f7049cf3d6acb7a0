package service

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/config"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
)

// TestOrphansLearnFromEveryProduct: a load balancer of one product shows an earlier ID of the cluster. What the other product has left from
// then is found, whichever is asked first.
func TestOrphansLearnFromEveryProduct(t *testing.T) {
	t.Parallel()
	asked := 0
	ignorant, knowing := newProduct("a"), newProduct("b")
	ignorant.orphans = func(query driver.OrphanQuery) (driver.Census, error) {
		asked++
		if !slices.Contains(query.ClusterIDs, "c0") {
			return driver.Census{}, nil
		}
		return driver.Census{Orphans: []driver.Orphan{{Kind: driver.OrphanLoadBalancer, ID: "lb-1", ClusterID: "c0"}}},
			errors.New("the rest cannot be read")
	}
	knowing.orphans = func(query driver.OrphanQuery) (driver.Census, error) {
		return driver.Census{ClusterIDs: append([]string{"c0"}, query.ClusterIDs...)}, nil
	}
	r := &Reconciler{opts: Options{Engines: []driver.Engine{ignorant, knowing}, Config: config.Config{ClusterID: "c1"}}}
	found, unread := r.Orphans(t.Context(), driver.OrphanQuery{ClusterIDs: []string{"clusterid"}})
	want := driver.Census{Orphans: []driver.Orphan{{Kind: driver.OrphanLoadBalancer, ID: "lb-1", ClusterID: "c0"}},
		ClusterIDs: []string{"c0", "c1", "clusterid"}}
	if diff := cmp.Diff(want, found); diff != "" || len(unread) != 1 || asked != 2 {
		t.Errorf("asked %d times, unread %v, census (-want +got):\n%s", asked, unread, diff)
	}
}
