//go:build linux && real

package real

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/alicloud-ccm/cloud-provider-alicloud/deploy"
	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/cluster"
)

// initorAccount is the ServiceAccount of the initializer.
const initorAccount = "provider-initor"

// TestInitializerPolicyOfKubelets takes over a machine: with the credentials on its disk, and with the token of the initializer's pod that they
// give, nothing can be changed but the empty provider ID of its own node.
func TestInitializerPolicyOfKubelets(t *testing.T) {
	taken, victim := nodeName(1), nodeName(2)
	content, err := deploy.Files.ReadFile("provider-initor.yaml")
	if err != nil {
		t.Fatal(err)
	}
	identity := slices.DeleteFunc(strings.Split(string(content), "\n---\n"), func(document string) bool { return strings.Contains(document, "kind: BroadcastJob") })
	apply(t, strings.Join(identity, "\n---\n"))
	nodeIs(t, taken, true)
	for _, node := range []string{taken, victim} {
		apply(t, fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: initor-%[1]s, namespace: kube-system}, spec: {nodeName: %[1]s, serviceAccountName: %[2]s,
			hostNetwork: true, tolerations: [{operator: Exists}], containers: [{name: pause, image: %[3]q}]}}`, node, initorAccount, cluster.TestServerImage))
	}
	kubelet := kubeletOf(t, instanceID(1))
	if err := changeNode(t.Context(), kubelet, victim, `{"metadata":{"labels":{"a":"b"}}}`); !apierrors.IsForbidden(err) {
		t.Errorf("the kubelet of one node changes another one: %v", err)
	}
	if _, err := tokenOf(t.Context(), kubelet, "initor-"+victim); !apierrors.IsForbidden(err) {
		t.Errorf("the kubelet of one node gets a token of a pod on another: %v", err)
	}
	token, err := tokenOf(t.Context(), kubelet, "initor-"+taken)
	if err != nil {
		t.Fatalf("the kubelet gets no token of its pod: %v", err)
	}
	pod := withToken(t, token)
	until(t, "the policy is in force", func(ctx context.Context) string {
		if err := changeNode(ctx, pod, victim, `{"metadata":{"labels":{"a":"b"}}}`); !apierrors.IsForbidden(err) {
			return fmt.Sprint("the token changes another node: ", err)
		}
		return ""
	})
	others := "only update the node that its pod runs on"
	if node(t, victim).Spec.ProviderID != "" { // from an earlier test: the API server asks no policy then
		others = "cannot be modified once set"
	}
	ours := fmt.Sprintf(`{"spec":{"providerID":"%s.%s"}}`, cluster.Region, instanceID(1))
	for _, test := range []struct{ what, node, patch, refused string }{
		{"provider ID of another node", victim, ours, others},
		{"role", taken, `{"metadata":{"labels":{"node-role.kubernetes.io/control-plane":""}}}`, "may not change labels"},
		{"taints", taken, `{"spec":{"taints":[{"key":"a","effect":"NoExecute"}]}}`, "may only set spec.providerID"},
		{"cordon", taken, `{"spec":{"unschedulable":true}}`, "may only set spec.providerID"},
		{"provider ID", taken, ours, ""}, // empty, or the same from an earlier test
		{"another provider ID", taken, `{"spec":{"providerID":"` + cluster.Region + `.i-other"}}`, "cannot be modified once set"},
	} {
		err := changeNode(t.Context(), pod, test.node, test.patch)
		if (test.refused == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), test.refused) {
			t.Errorf("%s: %v, want a refusal that says %q", test.what, err, test.refused)
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
	// The kubeconfig names the API server as machines reach it.
	admin, err := clientcmd.BuildConfigFromFlags("", kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	config.Host = admin.Host
	return clientOf(t, config)
}

// withToken is a client with a token and nothing else.
func withToken(t *testing.T, token string) kubernetes.Interface {
	t.Helper()
	admin, err := clientcmd.BuildConfigFromFlags("", kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	config := rest.AnonymousClientConfig(admin)
	config.BearerToken = token
	return clientOf(t, config)
}

func clientOf(t *testing.T, config *rest.Config) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// tokenOf asks for a token of the initializer's identity that is bound to a pod, as the kubelet does.
func tokenOf(ctx context.Context, client kubernetes.Interface, pod string) (string, error) {
	bound, err := sandbox.client.CoreV1().Pods(metav1.NamespaceSystem).Get(ctx, pod, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: bound.Name, UID: bound.UID},
	}}
	got, err := client.CoreV1().ServiceAccounts(metav1.NamespaceSystem).CreateToken(ctx, initorAccount, request, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	return got.Status.Token, nil
}

func changeNode(ctx context.Context, client kubernetes.Interface, name, patch string) error {
	_, err := client.CoreV1().Nodes().Patch(ctx, name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
	return err
}
