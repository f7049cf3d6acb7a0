//go:build unix

package e2e

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/e2e/intruder"
)

// TestInitorPolicy asks a real API server what somebody can do who has taken over a node, and with it the kubelet's identity and the token
// of the initializer's pod there.
func TestInitorPolicy(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	w := newInitorWorld(t)
	w.addMachine("taken")
	w.addMachine("victim")
	w.apply(intruder.Identity(t))
	onTaken, onVictim := w.initorPod("taken"), w.initorPod("victim")

	asKubelet := w.config()
	asKubelet.Impersonate = rest.ImpersonationConfig{UserName: "system:node:taken", Groups: []string{"system:nodes", "system:authenticated"}}
	kubelet := intruder.Client(t, asKubelet)
	if _, err := intruder.Token(t.Context(), kubelet, onVictim); err == nil {
		t.Error("the kubelet of one node gets a token of a pod on another")
	}
	token, err := intruder.Token(t.Context(), kubelet, onTaken)
	if err != nil {
		t.Fatalf("the kubelet gets no token of its pod: %v", err)
	}
	pod := intruder.WithToken(t, w.config(), token)
	w.p.until("the policy is in force", eventDeadline, func(ctx context.Context) bool {
		return apierrors.IsForbidden(intruder.Patch(ctx, pod, "victim", `{"metadata":{"labels":{"a":"b"}}}`))
	})
	unbound, err := intruder.Token(t.Context(), w.client, nil)
	if err != nil {
		t.Fatal(err)
	}
	const others = "only update the node that its pod runs on"
	ours := intruder.Attempt{What: "token without a node", Node: "taken", Patch: `{"spec":{"providerID":"cn-hangzhou.i-taken"}}`,
		Refused: others}
	if err := ours.Check(t.Context(), intruder.WithToken(t, w.config(), unbound)); err != nil {
		t.Error(err)
	}
	for _, attempt := range []intruder.Attempt{
		{What: "provider ID of another node", Node: "victim", Patch: `{"spec":{"providerID":"cn-hangzhou.i-taken"}}`, Refused: others},
		{What: "label of another node", Node: "victim", Patch: `{"metadata":{"labels":{"a":"b"}}}`, Refused: others},
		{What: "label", Node: "taken", Patch: `{"metadata":{"labels":{"node-role.kubernetes.io/control-plane":""}}}`,
			Refused: "may not change labels"},
		{What: "annotation", Node: "taken", Patch: `{"metadata":{"annotations":{"a":"b"}}}`, Refused: "may not change labels"},
		{What: "owner", Node: "taken", Patch: `{"metadata":{"finalizers":["example.com/a"]}}`, Refused: "may not change labels"},
		{What: "taints", Node: "taken", Patch: `{"spec":{"taints":null}}`, Refused: "may only set spec.providerID"},
		{What: "cordon", Node: "taken", Patch: `{"spec":{"unschedulable":true}}`, Refused: "may only set spec.providerID"},
		{What: "provider ID and cordon", Node: "taken", Patch: `{"spec":{"providerID":"cn-hangzhou.i-taken","unschedulable":true}}`,
			Refused: "may only set spec.providerID"},
		{What: "provider ID", Node: "taken", Patch: `{"spec":{"providerID":"cn-hangzhou.i-taken"}}`},
		{What: "the same provider ID", Node: "taken", Patch: `{"spec":{"providerID":"cn-hangzhou.i-taken"}}`},
		{What: "another provider ID", Node: "taken", Patch: `{"spec":{"providerID":"cn-hangzhou.i-victim"}}`,
			Refused: "is invalid: spec.providerID"},
	} {
		if err := attempt.Check(t.Context(), pod); err != nil {
			t.Error(err)
		}
	}
	if out, err := w.kubectl("delete", "validatingadmissionpolicybindings", intruder.Account); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	w.p.until("without the policy, the token can change other nodes", eventDeadline, func(ctx context.Context) bool {
		return intruder.Patch(ctx, pod, "victim", `{"metadata":{"labels":{"a":"b"}}}`) == nil
	})
	w.p.stop()
}

// initorPod makes a pod of the initializer's identity that stays on a node.
func (w *initorWorld) initorPod(node string) *corev1.Pod {
	w.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "initor-" + node},
		Spec: corev1.PodSpec{
			NodeName: node, ServiceAccountName: intruder.Account, Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			Containers: []corev1.Container{{Name: "pause", Image: "example.com/pause"}},
		},
	}
	made, err := w.client.CoreV1().Pods(metav1.NamespaceSystem).Create(w.Context(), pod, metav1.CreateOptions{})
	if err != nil {
		w.Fatal(err)
	}
	return made
}

// config is the configuration of the administrator.
func (w *initorWorld) config() *rest.Config {
	w.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", w.admin)
	if err != nil {
		w.Fatal(err)
	}
	return config
}
