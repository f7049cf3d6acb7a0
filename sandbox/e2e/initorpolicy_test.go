//go:build unix

package e2e

import (
	"context"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/alicloud-ccm/cloud-provider-alicloud/deploy"
)

const initorAccount = "provider-initor"

// TestInitorPolicy asks a real API server what somebody can do who has taken over a node, and with it the kubelet's identity and the token of
// the initializer's pod there.
func TestInitorPolicy(t *testing.T) {
	t.Parallel()
	w := newInitorWorld(t)
	w.addMachine("taken")
	w.addMachine("victim")
	w.apply(publishedIdentity(t))
	onTaken, onVictim := w.initorPod("taken"), w.initorPod("victim")

	kubelet := w.as(func(c *rest.Config) {
		c.Impersonate = rest.ImpersonationConfig{UserName: "system:node:taken", Groups: []string{"system:nodes", "system:authenticated"}}
	})
	if _, err := requestToken(t.Context(), kubelet, onVictim); err == nil {
		t.Error("the kubelet of one node gets a token of a pod on another")
	}
	token, err := requestToken(t.Context(), kubelet, onTaken)
	if err != nil {
		t.Fatalf("the kubelet gets no token of its pod: %v", err)
	}
	pod := w.withToken(token)
	w.p.until("the policy is in force", eventDeadline, func(ctx context.Context) bool {
		return apierrors.IsForbidden(patchNode(ctx, pod, "victim", `{"metadata":{"labels":{"a":"b"}}}`))
	})
	unbound, err := requestToken(t.Context(), w.client, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		what, node, patch string
		client            kubernetes.Interface
		refused           string // a part of the refusal, "" for none
	}{
		{"provider ID of another node", "victim", `{"spec":{"providerID":"cn-hangzhou.i-taken"}}`, pod, "only update the node that its pod runs on"},
		{"label of another node", "victim", `{"metadata":{"labels":{"a":"b"}}}`, pod, "only update the node that its pod runs on"},
		{"token without a node", "taken", `{"spec":{"providerID":"cn-hangzhou.i-taken"}}`, w.withToken(unbound), "only update the node that its pod runs on"},
		{"label", "taken", `{"metadata":{"labels":{"node-role.kubernetes.io/control-plane":""}}}`, pod, "may not change labels"},
		{"annotation", "taken", `{"metadata":{"annotations":{"a":"b"}}}`, pod, "may not change labels"},
		{"owner", "taken", `{"metadata":{"finalizers":["example.com/a"]}}`, pod, "may not change labels"},
		{"taints", "taken", `{"spec":{"taints":null}}`, pod, "may only set spec.providerID"},
		{"cordon", "taken", `{"spec":{"unschedulable":true}}`, pod, "may only set spec.providerID"},
		{"provider ID and cordon", "taken", `{"spec":{"providerID":"cn-hangzhou.i-taken","unschedulable":true}}`, pod, "may only set spec.providerID"},
		{"provider ID", "taken", `{"spec":{"providerID":"cn-hangzhou.i-taken"}}`, pod, ""},
		{"the same provider ID", "taken", `{"spec":{"providerID":"cn-hangzhou.i-taken"}}`, pod, ""},
		{"another provider ID", "taken", `{"spec":{"providerID":"cn-hangzhou.i-victim"}}`, pod, "cannot be modified once set"},
	} {
		err := patchNode(t.Context(), test.client, test.node, test.patch)
		if (test.refused == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), test.refused) {
			t.Errorf("%s: %v, want a refusal that says %q", test.what, err, test.refused)
		}
	}
	if out, err := w.kubectl("delete", "validatingadmissionpolicybindings", initorAccount); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	w.p.until("without the policy, the token can change other nodes", eventDeadline, func(ctx context.Context) bool {
		return patchNode(ctx, pod, "victim", `{"metadata":{"labels":{"a":"b"}}}`) == nil
	})
	w.p.stop()
}

// publishedIdentity is the published manifest without the BroadcastJob, which needs OpenKruise.
func publishedIdentity(t *testing.T) string {
	t.Helper()
	text, err := deploy.Files.ReadFile("provider-initor.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var kept []string
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		if !strings.Contains(document, "kind: BroadcastJob") {
			kept = append(kept, document)
		}
	}
	return strings.Join(kept, "\n---\n")
}

// initorPod makes a pod of the initializer's identity that stays on a node.
func (w *initorWorld) initorPod(node string) *corev1.Pod {
	w.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "initor-" + node},
		Spec: corev1.PodSpec{
			NodeName: node, ServiceAccountName: initorAccount, Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			Containers: []corev1.Container{{Name: "pause", Image: "example.com/pause"}},
		},
	}
	made, err := w.client.CoreV1().Pods(metav1.NamespaceSystem).Create(w.Context(), pod, metav1.CreateOptions{})
	if err != nil {
		w.Fatal(err)
	}
	return made
}

// as is a client of the administrator's with changes.
func (w *initorWorld) as(edit func(*rest.Config)) kubernetes.Interface {
	w.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", w.admin)
	if err != nil {
		w.Fatal(err)
	}
	edit(config)
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		w.Fatal(err)
	}
	return client
}

func (w *initorWorld) withToken(token string) kubernetes.Interface {
	w.Helper()
	return w.as(func(c *rest.Config) {
		*c = *rest.AnonymousClientConfig(c)
		c.BearerToken = token
	})
}

// requestToken asks for a token of the initializer's identity, bound to a pod unless that is nil.
func requestToken(ctx context.Context, client kubernetes.Interface, pod *corev1.Pod) (string, error) {
	request := &authenticationv1.TokenRequest{}
	if pod != nil {
		request.Spec.BoundObjectRef = &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID}
	}
	got, err := client.CoreV1().ServiceAccounts(metav1.NamespaceSystem).CreateToken(ctx, initorAccount, request, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	return got.Status.Token, nil
}

func patchNode(ctx context.Context, client kubernetes.Interface, name, patch string) error {
	_, err := client.CoreV1().Nodes().Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	return err
}
