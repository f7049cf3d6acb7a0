//go:build linux && real

package real

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/cluster"
	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/e2e/intruder"
)

// TestInitializerPolicyOfKubelets takes over a machine: with the credentials on its disk, and with the token of the initializer's pod that
// they give, nothing can be changed but the empty provider ID of its own node.
func TestInitializerPolicyOfKubelets(t *testing.T) {
	taken, victim := nodeName(1), nodeName(2)
	apply(t, intruder.Identity(t))
	nodeIs(t, taken, true)
	for _, node := range []string{taken, victim} {
		apply(t, fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: initor-%[1]s, namespace: kube-system}, spec: {nodeName: %[1]s, serviceAccountName: %[2]s,
			hostNetwork: true, tolerations: [{operator: Exists}], containers: [{name: pause, image: %[3]q}]}}`, node, intruder.Account,
			cluster.TestServerImage))
	}
	kubelet := kubeletOf(t, instanceID(1))
	if err := intruder.Patch(t.Context(), kubelet, victim, `{"metadata":{"labels":{"a":"b"}}}`); !apierrors.IsForbidden(err) {
		t.Errorf("the kubelet of one node changes another one: %v", err)
	}
	if _, err := intruder.Token(t.Context(), kubelet, podOf(t, victim)); !apierrors.IsForbidden(err) {
		t.Errorf("the kubelet of one node gets a token of a pod on another: %v", err)
	}
	token, err := intruder.Token(t.Context(), kubelet, podOf(t, taken))
	if err != nil {
		t.Fatalf("the kubelet gets no token of its pod: %v", err)
	}
	pod := intruder.WithToken(t, admin(t), token)
	until(t, "the policy is in force", func(ctx context.Context) string {
		if err := intruder.Patch(ctx, pod, victim, `{"metadata":{"labels":{"a":"b"}}}`); !apierrors.IsForbidden(err) {
			return fmt.Sprint("the token changes another node: ", err)
		}
		return ""
	})
	others := "only update the node that its pod runs on"
	if node(t, victim).Spec.ProviderID != "" { // from an earlier test: the API server asks no policy then
		others = "cannot be modified once set"
	}
	ours := fmt.Sprintf(`{"spec":{"providerID":"%s.%s"}}`, cluster.Region, instanceID(1))
	for _, attempt := range []intruder.Attempt{
		{What: "provider ID of another node", Node: victim, Patch: ours, Refused: others},
		{What: "role", Node: taken, Patch: `{"metadata":{"labels":{"node-role.kubernetes.io/control-plane":""}}}`,
			Refused: "may not change labels"},
		{What: "taints", Node: taken, Patch: `{"spec":{"taints":[{"key":"a","effect":"NoExecute"}]}}`, Refused: "may only set spec.providerID"},
		{What: "cordon", Node: taken, Patch: `{"spec":{"unschedulable":true}}`, Refused: "may only set spec.providerID"},
		{What: "provider ID", Node: taken, Patch: ours}, // empty, or the same from an earlier test
		{What: "another provider ID", Node: taken, Patch: `{"spec":{"providerID":"` + cluster.Region + `.i-other"}}`,
			Refused: "cannot be modified once set"},
	} {
		if err := attempt.Check(t.Context(), pod); err != nil {
			t.Error(err)
		}
	}
}

// kubeletOf is a client with the credentials on a machine's disk.
func kubeletOf(t *testing.T, id string) kubernetes.Interface {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(sandbox.dir, ".state/machines", id, "etc/kubernetes/kubelet.conf"))
	if err != nil {
		t.Fatal(err)
	}
	config.Host = admin(t).Host // the kubeconfig names the API server as machines reach it
	return intruder.Client(t, config)
}

// admin is the configuration of the administrator.
func admin(t *testing.T) *rest.Config {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// podOf is the pod of the initializer's identity on a node.
func podOf(t *testing.T, node string) *corev1.Pod {
	t.Helper()
	pod, err := sandbox.client.CoreV1().Pods(metav1.NamespaceSystem).Get(t.Context(), "initor-"+node, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return pod
}
