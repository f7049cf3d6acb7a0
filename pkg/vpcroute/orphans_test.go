package vpcroute

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
)

// TestOrphans: entries that this cluster has made for pod CIDRs that no node has are listed, also those that a changed --cluster-cidr left
// outside of it; entries of nodes, of others and of nobody are not.
func TestOrphans(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAccount(t, emulator.Options{})
		a.put(6)
		a.make("k8s/pod-cidr/test", map[string]string{cidrOf(0): "i-0", cidrOf(2): "i-2", cidrOf(3): "i-3", "10.99.0.0/24": "i-4"})
		a.make("k8s/pod-cidr/other", map[string]string{cidrOf(4): "i-4", "10.99.1.0/24": "i-4"})
		a.make("", map[string]string{cidrOf(5): "i-5"})
		time.Sleep(time.Second)
		c := newCluster(t, a)
		c.set(nodeOf(0), nodeOf(3, withProviderID("")))
		before := a.Last()
		orphans, err := c.writer.Orphans(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for i := range orphans {
			got[orphans[i].CIDR] = orphans[i].Instance + ": " + orphans[i].Reason
		}
		want := map[string]string{
			cidrOf(2): "i-2: no Node has this pod CIDR", "10.99.0.0/24": "i-4: it is outside of --cluster-cidr [10.244.0.0/16]",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("orphans (-want +got):\n%s", diff)
		}
		if n := a.Count(before, writes...); n != 0 {
			t.Errorf("%d writes", n)
		}
	})
}
