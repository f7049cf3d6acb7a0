//go:build unix && fleet

package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	cloudproviderapi "k8s.io/cloud-provider/api"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/cluster"
)

// undeclared begins the names of machines on premises that nobody has declared as such.
const undeclared = "idc-"

// foreignKinds are nodes that are not this manager's, by the beginning of their names. No instance of ECS stands behind any of them: were
// they taken for its own, each would look as if its instance were gone.
var foreignKinds = map[string]func(node *corev1.Node, i int){
	undeclared: func(node *corev1.Node, i int) { // on premises: nothing but an address that the VPC does not have
		node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: fmt.Sprintf("192.168.7.%d", i)}}
		node.Spec.Taints = []corev1.Taint{{Key: cloudproviderapi.TaintExternalCloudProvider, Value: "true", Effect: corev1.TaintEffectNoSchedule}}
	},
	"hybrid-":  withProviderID("ack-hybrid://%s.i-hybrid%d"),
	"other-":   withProviderID("k3s://%s/worker%d"),
	"beijing-": withProviderID("cn-beijing.i-%.0sfar%d"),
	"eci-":     withProviderID("%s.eci-%d"),
	"virtual-": func(node *corev1.Node, i int) {
		withProviderID("%s.i-virtual%d")(node, i)
		node.Labels = map[string]string{"type": "virtual-kubelet"}
	},
	"lingjun-": func(node *corev1.Node, i int) {
		withProviderID("%s.e01-lingjun%d")(node, i)
		node.Labels = map[string]string{"alibabacloud.com/lingjun-worker": "true"}
	},
	"optout-": func(node *corev1.Node, i int) {
		withProviderID("alicloud://%s.i-optout%d")(node, i)
		node.Labels = map[string]string{"service.alibabacloud.com/exclude-node": "true"}
	},
	"legacy-": func(node *corev1.Node, i int) {
		withProviderID("%s.i-legacy%d")(node, i)
		node.Labels = map[string]string{"service.beta.kubernetes.io/exclude-node": "true"}
	},
}

// withProviderID formats a provider ID of the cluster's region and a number.
func withProviderID(format string) func(*corev1.Node, int) {
	return func(node *corev1.Node, i int) { node.Spec.ProviderID = fmt.Sprintf(format, cluster.Region, i) }
}

// TestForeignNodesAreLeftAlone has 50 nodes of every kind that is none of ours, silent all of them, beside nodes of ours. The manager
// deletes the one of ours whose instance is gone and asks the API server for no change of any other. Those that nothing distinguishes from
// a node of ours that joins (on premises, without provider ID and without the label) have an event, and no network.
func TestForeignNodesAreLeftAlone(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	audit := filepath.Join(t.TempDir(), "audit.log")
	w := newWorld(t, worldOptions{nodes: 3, up: []string{"--audit-log", audit, "--pod-cidr", "10.128.0.0/9"}})
	for prefix, mark := range foreignKinds {
		for i := 1; i <= fleet; i++ {
			w.createForeign(prefix, i, mark)
		}
	}
	before := w.picture(t.Context()).Nodes
	if want := 3 + fleet*len(foreignKinds); len(before) != want {
		t.Fatalf("%d nodes, want %d", len(before), want)
	}
	w.startManager(append(hasty, "--cluster-cidr=10.128.0.0/9")...)
	w.nodesAreInitialized(names(1, 3))
	w.admin(http.MethodDelete, "instances/"+instanceID(3), nil, nil)
	begin := time.Now()
	w.until(nodeName(3)+" goes", goneWithin, func(ctx context.Context) string {
		if w.nodes(ctx)[nodeName(3)] != nil {
			return "it is there"
		}
		return ""
	})
	delete(before, nodeName(3))
	w.holds("no other node goes", 2*time.Since(begin), func(ctx context.Context) string {
		for name, node := range w.nodes(ctx) {
			if node.UID != before[name] {
				return name + " is another one"
			}
		}
		return w.missing(ctx, slices.Collect(maps.Keys(before)))
	})
	w.until("nodes that nothing distinguishes from ours have an event, and no network", eventDeadline, func(ctx context.Context) string {
		have := w.nodes(ctx)
		for i := 1; i <= fleet; i++ {
			if name := fmt.Sprint(undeclared, i); have[name] == nil || statusOf(have[name], corev1.NodeNetworkUnavailable) != corev1.ConditionTrue {
				return name + " has a network"
			}
		}
		return atLeast(w.countEvents(ctx, "InstanceAmbiguous"), fleet)
	})
	if have := w.entries(); len(have) != 2 {
		t.Errorf("routes %v, want those of the two nodes of ours", have)
	}
	w.stopManager()
	w.changedNone(audit)
}

func (w *world) createForeign(prefix string, i int, mark func(*corev1.Node, int)) {
	w.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s%d", prefix, i)}}
	mark(node, i)
	_, err := w.client.CoreV1().Nodes().Create(w.Context(), node, metav1.CreateOptions{})
	if err == nil && len(node.Status.Addresses) > 0 {
		patch := fmt.Sprintf(`{"status":{"addresses":[{"type":"InternalIP","address":%q}]}}`, node.Status.Addresses[0].Address)
		_, err = w.client.CoreV1().Nodes().PatchStatus(w.Context(), node.Name, []byte(patch))
	}
	if err != nil {
		w.Fatal(err)
	}
}

// changedNone expects that the manager asked for no change of a foreign node, except for the network of those that may be its own.
func (w *world) changedNone(audit string) {
	w.Helper()
	file, err := os.Open(audit)
	if err != nil {
		w.Fatal(err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	changes, joining := 0, map[string]bool{}
	for lines.Scan() {
		var event struct {
			Verb      string
			ObjectRef struct{ Resource, Subresource, Name string }
		}
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			w.Fatal(err)
		}
		if event.ObjectRef.Resource != "nodes" || event.Verb == "get" || event.Verb == "list" || event.Verb == "watch" {
			continue
		}
		changes++
		if strings.HasPrefix(event.ObjectRef.Name, undeclared) && event.ObjectRef.Subresource == "status" && !joining[event.ObjectRef.Name] {
			joining[event.ObjectRef.Name] = true
			continue
		}
		for prefix := range foreignKinds {
			if strings.HasPrefix(event.ObjectRef.Name, prefix) {
				w.Errorf("the manager asked to %s %s (%s)", event.Verb, event.ObjectRef.Name, event.ObjectRef.Subresource)
			}
		}
	}
	if err := lines.Err(); err != nil || changes == 0 {
		w.Errorf("%d changes of nodes in the audit log, want those of ours (%v)", changes, err)
	}
}
