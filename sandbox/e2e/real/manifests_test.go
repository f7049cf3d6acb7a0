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

// TestManifestsOfUsers applies what users have and looks whether it does what it always did.
func TestManifestsOfUsers(t *testing.T) {
	manifestOfUsers(t)
	apply(t, testdata(t, "ccm-test.yaml", cluster.TestServerImage))
	vip := vipOf(t, "nginx")
	inside, outside := at(t, vpcClient), at(t, internetClient)

	t.Run("the intranet Service answers inside the VPC only", func(t *testing.T) {
		answers(t, inside, "http://"+vip)
		answers(t, at(t, instanceID(1)), "http://"+vip)
		if r, err := outside.get(t.Context(), "http://"+vip); err == nil {
			t.Errorf("the internet gets an answer from %s", r.Name)
		}
	})
	t.Run("an internet Service answers outside", func(t *testing.T) {
		apply(t, strings.NewReplacer("intranet", "internet", "name: nginx\n  namespace", "name: public\n  namespace").Replace(
			strings.SplitN(testdata(t, "ccm-test.yaml", cluster.TestServerImage), "---", 2)[0]))
		answers(t, outside, "http://"+vipOf(t, "public"))
	})
	t.Run("nodes are initialized and have routes", func(t *testing.T) {
		until(t, "the nodes are initialized", func(ctx context.Context) string {
			nodes, err := sandbox.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
			if err != nil {
				return err.Error()
			}
			for _, node := range nodes.Items {
				if !strings.HasPrefix(node.Name, "node-") {
					continue // no ECS machine
				}
				if node.Spec.ProviderID == "" || len(node.Spec.Taints) > 0 {
					return fmt.Sprintf("%s has provider ID %q and taints %v", node.Name, node.Spec.ProviderID, node.Spec.Taints)
				}
			}
			return ""
		})
	})
	t.Run("what today's Kubernetes does differently is logged once", func(t *testing.T) { warningsOfLeader(t) })
	t.Run("the liveness probe over plain HTTP passes", func(t *testing.T) {
		// It begins after 15 s. The kubelet reports every failure with an event.
		until(t, "the probe has run", func(ctx context.Context) string {
			pods, err := podsOf(ctx, metav1.NamespaceSystem, "app=cloud-controller-manager")
			if err != nil || len(pods) != nodeCount {
				return fmt.Sprintf("%d pods, %v", len(pods), err)
			}
			for _, pod := range pods {
				status := pod.Status.ContainerStatuses[0]
				if status.RestartCount > 0 {
					t.Fatalf("%s was restarted: %+v", pod.Name, status.LastTerminationState.Terminated)
				}
				if status.State.Running == nil || metav1.Now().Sub(status.State.Running.StartedAt.Time).Seconds() < 30 {
					return pod.Name + " runs for less than two probes"
				}
			}
			return ""
		})
		if events := kubectl(t, "", "-n", "kube-system", "get", "events", "--field-selector", "reason=Unhealthy", "-o", "name"); events != "" {
			t.Errorf("probes failed:\n%s", events)
		}
	})
}

// warningsOfLeader looks for what the manager has to say about the old manifest: each thing in exactly one line of the leader's log.
func warningsOfLeader(t *testing.T) {
	t.Helper()
	lease, err := sandbox.client.CoordinationV1().Leases(metav1.NamespaceSystem).Get(t.Context(), "cloud-controller-manager",
		metav1.GetOptions{})
	if err != nil || lease.Spec.HolderIdentity == nil {
		t.Fatalf("nobody leads: %v", err)
	}
	leader, _, _ := strings.Cut(*lease.Spec.HolderIdentity, "_") // the host name comes first
	pods, err := podsOf(t.Context(), metav1.NamespaceSystem, "app=cloud-controller-manager")
	if err != nil {
		t.Fatal(err)
	}
	for _, pod := range pods {
		if pod.Spec.NodeName == leader {
			loggedOnce(t, pod.Name, "the lock type of --leader-elect-resource-lock no longer exists",
				"All controllers use the identity of this process", "Backends of load balancers are read from Endpoints")
			return
		}
	}
	t.Fatalf("no pod of the manager runs on the leader's node %s", leader)
}

// loggedOnce looks for texts in the log of a manager's pod: each must be there exactly once.
func loggedOnce(t *testing.T, pod string, texts ...string) {
	t.Helper()
	log := kubectl(t, "", "-n", "kube-system", "logs", pod)
	for _, want := range texts {
		if times := strings.Count(log, want); times != 1 {
			t.Errorf("%q is logged %d times, want once; the log is\n%s", want, times, log)
		}
	}
}
