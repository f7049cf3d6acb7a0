package node

import (
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-base/metrics/testutil"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
)

// TestUninitializedNodesInMetrics: a scrape shows how many nodes could not be initialized, and why; not those that wait for somebody else,
// and no longer those that were initialized or are gone. No other test may initialize nodes beside it.
func TestUninitializedNodesInMetrics(t *testing.T) { //nolint:paralleltest // the metric is that of the process
	synctest.Test(t, func(t *testing.T) {
		a := newAccount(t, emulator.Options{})
		c := newCluster(t, Options{API: a.Client})
		count := func(reason string) float64 {
			t.Helper()
			value, err := testutil.GetGaugeMetricValue(uninitialized.WithLabelValues(reason))
			if err != nil {
				t.Fatal(err)
			}
			return value
		}
		nodes := map[string]*corev1.Node{
			reasonInstanceNotFound:  nodeOf(emulator.Instance{ID: "i-hidden", PrivateIP: "10.1.9.1"}, tainted),
			reasonInstanceAmbiguous: nodeOf(emulator.Instance{ID: "i-2", PrivateIP: "10.1.9.2"}, tainted, withProviderID("")),
			reasonProviderIDInvalid: nodeOf(emulator.Instance{ID: "i-3", PrivateIP: "10.1.9.3"}, tainted, withProviderID("cn-hangzhou.")),
			"NoAddress": nodeOf(emulator.Instance{ID: "i-4"}, tainted, withProviderID(""), func(n *corev1.Node) {
				n.Status.Addresses = nil
			}),
			"": nodeOf(emulator.Instance{ID: "i-5", PrivateIP: "10.1.9.5"}, tainted, withProviderID("aws:///i-5")),
		}
		for _, node := range nodes {
			c.add(node)
		}
		for _, node := range nodes {
			_, _ = c.InstanceMetadata(t.Context(), node) //nolint:errcheck // the metric is what is tested
		}
		for _, each := range waitingReasons {
			reason := each.reason
			want := 0.0
			if nodes[reason] != nil {
				want = 1
			}
			if got := count(reason); got != want {
				t.Errorf("%s: %v nodes, want %v", reason, got, want)
			}
		}
		if _, err := a.PutInstance("i-hidden", emulator.InstanceSpec{PrivateIP: "10.1.9.1"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Minute)
		if _, err := c.InstanceMetadata(t.Context(), nodes[reasonInstanceNotFound]); err != nil {
			t.Error(err)
		}
		if got := count(reasonInstanceNotFound); got != 0 {
			t.Errorf("%v nodes although it was initialized", got)
		}
	})
}
