package slb

import (
	"slices"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/policy"
)

// TestForgedPodStatusPublishesNoMachine: whoever can write the status of a Pod can have it show any address. One that is on no node counts
// for nothing, and none has the address of a machine that is no node, or of another node, as its own.
func TestForgedPodStatusPublishesNoMachine(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		instance string
		node     string
		rules    []policy.AddressRule
		want     bool
	}{
		"never scheduled":            {"i-db", "", nil, false},
		"never scheduled, on a node": {"i-a", "", nil, false},
		"machine that is no node":    {"i-db", "a", nil, false},
		"that a rule allows": {"i-db", "a", []policy.AddressRule{{Namespaces: []string{testNamespace}, CIDRs: []string{"10.0.0.0/8"}}},
			true},
		"hostNetwork":                 {"i-a", "a", nil, true},
		"hostNetwork of another node": {"i-b", "a", nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := strictWorld(t, c.rules...)
				if _, err := w.emulator.PutInstance("i-db", emulator.InstanceSpec{}); err != nil {
					t.Fatal(err)
				}
				address := w.addressOf(c.instance)
				w.putNode(testNode("a", func(node *corev1.Node) { internalIP(node, w.addressOf("i-a")) }))
				w.putNode(testNode("b", func(node *corev1.Node) { internalIP(node, w.addressOf("i-b")) }))
				w.putAddressedPod(testNamespace, "forged", address, func(pod *corev1.Pod) { pod.Spec.NodeName = c.node })
				svc := testService("web", 80)
				eni(svc)
				w.put(svc)
				w.putTargets(svc, address+" forged")
				for range 3 {
					_ = w.pass("web") //nolint:errcheck // what it has done is looked at
				}
				if got := slices.Contains(w.backendAddresses(), address); got != c.want {
					t.Errorf("%s is a backend server: %v, want %v; events %q", address, got, c.want, w.newEvents())
				}
			})
		})
	}
}

// internalIP sets the address of a Node.
func internalIP(node *corev1.Node, address string) {
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address}}
}
