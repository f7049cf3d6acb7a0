//go:build unix && fleet

package e2e

import (
	"context"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
)

// TestDualStack has pods with an address of each IP version reach each other over the routes of both, in a VPC that has IPv6.
func TestDualStack(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	const podCIDRs = "10.244.0.0/18,fd00:10:244::/56"
	config := cloud.DefaultConfig()
	config.VPCs[0].IPv6CIDR = "2408:4005:300:ab00::/56"
	for i, block := range []string{"2408:4005:300:ab01::/64", "2408:4005:300:ab02::/64"} {
		config.VSwitches[i].IPv6CIDR = block
	}
	w := newWorld(t, worldOptions{nodes: 3, cloud: config, up: []string{"--pod-cidr", podCIDRs}})
	from, to := w.pod(nodeName(2)), w.pod(nodeName(3))
	if len(to.Status.PodIPs) != 2 {
		t.Fatalf("the pod has the addresses %v, want one of each IP version", to.Status.PodIPs)
	}
	both := func(want bool) {
		t.Helper()
		for _, ip := range to.Status.PodIPs {
			w.reachAt(from, to, ip.IP, want)
		}
	}
	both(false)
	w.startManager(append(slices.Clone(routed), "--cluster-cidr="+podCIDRs)...)
	both(true)
	w.until("no network is said to be unavailable any more", routedWithin, func(ctx context.Context) string {
		for name, node := range w.nodes(ctx) {
			if statusOf(node, corev1.NodeNetworkUnavailable) != corev1.ConditionFalse {
				return "that of " + name + " is"
			}
		}
		return ""
	})
	for name, node := range w.nodes(t.Context()) {
		for _, cidr := range node.Spec.PodCIDRs {
			if !slices.ContainsFunc(w.entries(), func(e entry) bool { return e.cidr == cidr && e.status == "Available" }) {
				t.Errorf("no route for %s of %s", cidr, name)
			}
		}
	}
}
