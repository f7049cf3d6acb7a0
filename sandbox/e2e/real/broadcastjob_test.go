//go:build linux && real

package real

import (
	"context"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/cluster"
)

// TestInitializerOfUsers gives machines their provider IDs as users do: with a BroadcastJob of the real OpenKruise manager, before there
// is a manager.
func TestInitializerOfUsers(t *testing.T) {
	if ids := kubectl(t, "", "get", "nodes", "-o", "jsonpath={.items[*].spec.providerID}"); ids != "" {
		t.Fatalf("before the initializer there are the provider IDs %s: no test with a manager may run earlier", ids)
	}
	apply(t, testdata(t, "provider.yaml", cluster.InitorImage))
	providerIDs := func(ctx context.Context, want int) string {
		nodes, err := sandbox.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return err.Error()
		}
		done := 0
		for _, node := range nodes.Items {
			for i := 1; i <= want; i++ {
				if node.Name == nodeName(i) && strings.HasSuffix(node.Spec.ProviderID, cluster.Region+"."+instanceID(i)) {
					done++
				}
			}
		}
		if done < want {
			return fmt.Sprintf("%d of %d nodes have their provider IDs", done, want)
		}
		return ""
	}
	until(t, "all nodes have their provider IDs", func(ctx context.Context) string { return providerIDs(ctx, nodeCount) })
	until(t, "the BroadcastJob counts its successes", func(context.Context) string {
		got := kubectl(t, "", "get", "broadcastjob", "create-ecs-node-provider-id", "-o", "jsonpath={.status.succeeded}/{.status.desired}")
		// On the premises it ends well, too, and changes nothing; the virtual node is left out.
		if want := fmt.Sprintf("%d/%d", nodeCount+1, nodeCount+1); got != want {
			return got
		}
		return ""
	})
	// OpenKruise has images pulled always where the manifest says nothing, so each machine has asked the registry, the one on the
	// premises as well.
	for _, kind := range []string{"Pulled", "Failed"} {
		events := kubectl(t, "", "get", "events", "--field-selector", "reason="+kind, "-o", `jsonpath={range .items[*]}{.message}{"\n"}{end}`)
		pulled := strings.Count(events, fmt.Sprintf("Successfully pulled image %q", cluster.InitorImage))
		if want := map[string]int{"Pulled": nodeCount + 1}[kind]; pulled != want || (kind == "Failed" && events != "") {
			t.Errorf("events with reason %s:\n%s", kind, events)
		}
	}
	for _, name := range []string{"idc-1", "virtual-1"} {
		node, err := sandbox.client.CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{})
		if err != nil || node.Spec.ProviderID != "" {
			t.Errorf("node %s, which is no ECS machine, has the provider ID %q, %v", name, node.Spec.ProviderID, err)
		}
	}
}
