// Package intruder acts in tests as somebody who has taken over a node, and with it the kubelet's identity and the token of the
// initializer's pod there.
package intruder

import (
	"context"
	"fmt"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/alicloud-ccm/cloud-provider-alicloud/deploy"
)

// Account is the ServiceAccount of the initializer.
const Account = "provider-initor"

// Identity returns the published manifest of the initializer without the BroadcastJob, which needs OpenKruise.
func Identity(t *testing.T) string {
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

// Client returns a client with a configuration.
func Client(t *testing.T, config *rest.Config) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// WithToken returns a client of the API server of a configuration, with a token and nothing else.
func WithToken(t *testing.T, config *rest.Config, token string) kubernetes.Interface {
	t.Helper()
	config = rest.AnonymousClientConfig(config)
	config.BearerToken = token
	return Client(t, config)
}

// Token asks for a token of the initializer's identity, as a kubelet does, bound to a pod unless that is nil.
func Token(ctx context.Context, client kubernetes.Interface, pod *corev1.Pod) (string, error) {
	request := &authenticationv1.TokenRequest{}
	if pod != nil {
		request.Spec.BoundObjectRef = &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID}
	}
	got, err := client.CoreV1().ServiceAccounts(metav1.NamespaceSystem).CreateToken(ctx, Account, request, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	return got.Status.Token, nil
}

// Patch tries to change a node.
func Patch(ctx context.Context, client kubernetes.Interface, node, patch string) error {
	_, err := client.CoreV1().Nodes().Patch(ctx, node, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	return err
}

// Attempt is a change of a node. Refused is a part of the refusal, "" for none.
type Attempt struct{ What, Node, Patch, Refused string }

// Check tries, and fails if the answer is another one.
func (a Attempt) Check(ctx context.Context, client kubernetes.Interface) error {
	err := Patch(ctx, client, a.Node, a.Patch)
	switch {
	case err == nil && a.Refused != "":
		return fmt.Errorf("%s: no refusal, want one that says %q", a.What, a.Refused)
	case err == nil, a.Refused != "" && strings.Contains(err.Error(), a.Refused):
		return nil
	}
	return fmt.Errorf("%s: %w, want %q", a.What, err, a.Refused)
}
