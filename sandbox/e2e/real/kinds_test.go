//go:build linux && real

package real

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/cluster"
)

// everywhere runs a pod on each node that says nothing against it.
const everywhere = `
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: everywhere}
spec:
  selector: {matchLabels: {app: everywhere}}
  template:
    metadata: {labels: {app: everywhere}}
    spec:
      containers: [{name: web, image: testserver:v1}]
`

// third is an instance beside those of the other tests.
const third = "third-1"

// TestKindsOfNodes looks at what the manager makes of machines that are not alike: instances in the zones of a region, a machine on
// premises, which then gets the name of another region, and a virtual node.
func TestKindsOfNodes(t *testing.T) {
	manifestOfUsers(t)
	apply(t, everywhere)
	order(t, http.MethodPut, "/_emulator/instances/i-third1",
		fmt.Sprintf(`{"InstanceName":%q,"VSwitchId":"vsw-a","SourceDestCheck":true}`, third))
	nodeIs(t, third, true)
	for name, zone := range map[string]string{nodeName(1): "cn-hangzhou-a", nodeName(2): "cn-hangzhou-b", third: "cn-hangzhou-a"} {
		until(t, name+" is initialized", func(context.Context) string { return initialized(node(t, name), zone) })
	}
	until(t, "its pod CIDR has a route", func(ctx context.Context) string {
		return routeOf(ctx, t, node(t, third).Spec.PodCIDR, "i-third1")
	})
	t.Run("no pod goes where something is against it", func(t *testing.T) {
		for selector, of := range map[string]struct {
			namespace string
			nodes     []string
		}{
			"app=everywhere":               {metav1.NamespaceDefault, []string{nodeName(1), nodeName(2), third}},
			"app=cloud-controller-manager": {metav1.NamespaceSystem, []string{nodeName(1), nodeName(2)}}, // they alone have the role of masters
		} {
			until(t, selector+" runs on the right machines", func(ctx context.Context) string {
				return podsRun(ctx, of.namespace, selector, of.nodes...)
			})
		}
	})
	t.Run("what is no instance is left as it is", func(t *testing.T) {
		for _, name := range []string{"idc-1", "virtual-1"} {
			n := node(t, name)
			if n.Spec.ProviderID != "" || n.Labels[corev1.LabelTopologyZone] != "" || n.Spec.PodCIDR == "" {
				t.Errorf("%s has the provider ID %q, the zone %q and the pod CIDR %q", name, n.Spec.ProviderID, n.Labels[corev1.LabelTopologyZone],
					n.Spec.PodCIDR)
			}
			if routeOf(t.Context(), t, n.Spec.PodCIDR, "") == "" {
				t.Errorf("a route leads to the pods of %s", name)
			}
		}
	})
	t.Run("the Node of a released instance goes, and not that of another region", func(t *testing.T) {
		kubectl(t, "", "patch", "node", "idc-1", "-p", `{"spec":{"providerID":"cn-beijing.i-sandbox0009"}}`)
		order(t, http.MethodPost, "/_sandbox/machines/idc-1/stop/kubelet", "")
		nodeIs(t, "idc-1", false)
		cidr := node(t, third).Spec.PodCIDR
		order(t, http.MethodDelete, "/_emulator/instances/i-third1", "")
		until(t, "the Node of the released instance is deleted", func(ctx context.Context) string {
			if _, err := sandbox.client.CoreV1().Nodes().Get(ctx, third, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				return fmt.Sprintf("it exists (%v)", err)
			}
			return ""
		})
		until(t, "its route goes, too", func(ctx context.Context) string {
			if routeOf(ctx, t, cidr, "") == "" {
				return cidr + " is in the route table"
			}
			return ""
		})
		order(t, http.MethodPost, "/_sandbox/machines/idc-1/start/kubelet", "")
		nodeIs(t, "idc-1", true)
		// A kubelet whose Node was deleted makes a new one, without an ID.
		if id := node(t, "idc-1").Spec.ProviderID; id != "cn-beijing.i-sandbox0009" {
			t.Errorf("idc-1 has the provider ID %q", id)
		}
		// So it joins again for the tests that follow.
		order(t, http.MethodPost, "/_sandbox/machines/idc-1/stop/kubelet", "")
		kubectl(t, "", "delete", "node", "idc-1")
		order(t, http.MethodPost, "/_sandbox/machines/idc-1/start/kubelet", "")
		nodeIs(t, "idc-1", true)
	})
}

func node(t *testing.T, name string) *corev1.Node {
	t.Helper()
	n, err := sandbox.client.CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// initialized says what a Node lacks that its instance says of it.
func initialized(n *corev1.Node, zone string) string {
	for label, want := range map[string]string{
		corev1.LabelTopologyZone: zone, corev1.LabelTopologyRegion: cluster.Region, corev1.LabelInstanceTypeStable: "ecs.g7.large",
	} {
		if n.Labels[label] != want {
			return fmt.Sprintf("the label %s is %q", label, n.Labels[label])
		}
	}
	if !strings.HasPrefix(n.Spec.ProviderID, cluster.Region+".i-") {
		return fmt.Sprintf("the provider ID is %q", n.Spec.ProviderID)
	}
	return ""
}

// routeOf says what is missing until an entry of the system route table leads a pod CIDR to an instance; "" is any.
func routeOf(ctx context.Context, t *testing.T, cidr, instance string) string {
	t.Helper()
	entries, err := cloudClient(t).DescribeRouteEntries(ctx, "vtb-emulator", false)
	if err != nil {
		return err.Error()
	}
	for _, entry := range entries {
		for _, hop := range entry.NextHops {
			if entry.CIDR == cidr && (instance == "" || hop.ID == instance) {
				return ""
			}
		}
	}
	return fmt.Sprintf("of %d entries none leads %s to %q", len(entries), cidr, instance)
}
