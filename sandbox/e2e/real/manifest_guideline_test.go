//go:build linux && real

package real

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	cloudproviderapi "k8s.io/cloud-provider/api"

	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/cluster"
)

// TestGuideline runs the DaemonSet of the Kubernetes documentation, with the provider's name for its placeholder, where only its node
// selector and its tolerations let it: on a machine that nobody has initialized, with the taints of control planes.
func TestGuideline(t *testing.T) {
	manifestOfUsers(t) // roles, which the outline does not have; its DaemonSet and its labels are taken away
	kubectl(t, "", "-n", "kube-system", "delete", "daemonset", "cloud-controller-manager")
	for i := range nodeCount {
		kubectl(t, "", "label", "node", nodeName(i+1), "node-role.kubernetes.io/master-")
	}
	until(t, "the manager of users is gone", func(ctx context.Context) string {
		return podsAre(ctx, metav1.NamespaceSystem, "app=cloud-controller-manager")
	})
	// The outline mounts no access key: the machine's RAM role gives one, as its users would have to arrange.
	master := nodeName(3)
	order(t, http.MethodPut, "/_emulator/instances/"+instanceID(3),
		fmt.Sprintf(`{"InstanceName":%q,"VSwitchId":"vsw-a","RamRoleName":"emulator-role","SourceDestCheck":true}`, master))
	t.Cleanup(func() {
		leave(t, 3)
		deleteRoutesOf(t, instanceID(3)) // this manager's cluster id is the one that all clusters share, so that no other removes them
	})
	nodeIs(t, master, true)
	kubectl(t, "", "label", "node", master, "node-role.kubernetes.io/master=")
	kubectl(t, "", "taint", "node", master, "node-role.kubernetes.io/master=:NoSchedule", "node-role.kubernetes.io/control-plane=:NoSchedule")
	if taints := taintKeys(node(t, master)); !slices.Contains(taints, cloudproviderapi.TaintExternalCloudProvider) {
		t.Fatalf("%s has the taints %v before a manager has seen it", master, taints)
	}
	apply(t, testdata(t, "guideline-daemonset.yaml", cluster.ManagerImage, "[YOUR_CLOUD_PROVIDER]", "alicloud"))
	const selector = "k8s-app=cloud-controller-manager"

	t.Run("it runs on the tainted machine and initializes it", func(t *testing.T) {
		until(t, "the manager runs there only", func(ctx context.Context) string {
			return podsRun(ctx, metav1.NamespaceSystem, selector, master)
		})
		until(t, "the machine is initialized", func(context.Context) string {
			n := node(t, master)
			if n.Spec.ProviderID == "" || slices.Contains(taintKeys(n), cloudproviderapi.TaintExternalCloudProvider) {
				return fmt.Sprintf("provider ID %q, taints %v", n.Spec.ProviderID, taintKeys(n))
			}
			return ""
		})
	})
	t.Run("its flags are accepted, and what they mean today is logged once", func(t *testing.T) {
		pods, err := podsOf(t.Context(), metav1.NamespaceSystem, selector)
		if err != nil || len(pods) != 1 {
			t.Fatalf("%d pods, %v", len(pods), err)
		}
		loggedOnce(t, pods[0].Name, "Pod CIDRs are assigned by the kube-controller-manager", "All controllers use the identity of this process",
			"Backends of load balancers are read from Endpoints")
		if restarts := pods[0].Status.ContainerStatuses[0].RestartCount; restarts > 0 {
			t.Errorf("it was restarted %d times", restarts)
		}
	})
	t.Run("it stays where the kubelet is not ready", func(t *testing.T) {
		order(t, http.MethodPost, "/_sandbox/machines/"+instanceID(3)+"/stop/kubelet", "")
		nodeIs(t, master, false)
		until(t, "the machine is tainted for it", func(context.Context) string {
			if taints := taintKeys(node(t, master)); !slices.Contains(taints, corev1.TaintNodeUnreachable) {
				return fmt.Sprint(taints)
			}
			return ""
		})
		if missing := podsRun(t.Context(), metav1.NamespaceSystem, selector, master); missing != "" {
			t.Error(missing)
		}
		order(t, http.MethodPost, "/_sandbox/machines/"+instanceID(3)+"/start/kubelet", "")
		nodeIs(t, master, true)
	})
	t.Run("it comes to a machine with the label", func(t *testing.T) {
		kubectl(t, "", "label", "node", nodeName(1), "node-role.kubernetes.io/master=")
		until(t, "the manager runs there, too", func(ctx context.Context) string {
			return podsRun(ctx, metav1.NamespaceSystem, selector, nodeName(1), master)
		})
	})
}

// podsAre says what is wrong when the pods with a label are not exactly one on each of these nodes, which are sorted.
func podsAre(ctx context.Context, namespace, selector string, nodes ...string) string {
	pods, err := podsOf(ctx, namespace, selector)
	if err != nil {
		return err.Error()
	}
	var on []string
	for _, pod := range pods {
		if pod.DeletionTimestamp != nil {
			return pod.Name + " is being deleted"
		}
		on = append(on, pod.Spec.NodeName)
	}
	if slices.Sort(on); !slices.Equal(on, nodes) {
		return fmt.Sprintf("pods with %s are on %v", selector, on)
	}
	return ""
}

// podsRun is podsAre, and says what is wrong when one of the pods does not run.
func podsRun(ctx context.Context, namespace, selector string, nodes ...string) string {
	if wrong := podsAre(ctx, namespace, selector, nodes...); wrong != "" {
		return wrong
	}
	pods, err := podsOf(ctx, namespace, selector)
	if err != nil {
		return err.Error()
	}
	for _, pod := range pods {
		if len(pod.Status.ContainerStatuses) == 0 || pod.Status.ContainerStatuses[0].State.Running == nil {
			return pod.Name + " does not run"
		}
	}
	return ""
}

func taintKeys(node *corev1.Node) []string {
	var keys []string
	for _, taint := range node.Spec.Taints {
		keys = append(keys, taint.Key)
	}
	return keys
}

// leave releases an instance and deletes its Node, whether there is a manager or not.
func leave(t *testing.T, i int) {
	t.Helper()
	order(t, http.MethodDelete, "/_emulator/instances/"+instanceID(i), "")
	kubectl(t, "", "delete", "node", nodeName(i), "--ignore-not-found")
}
