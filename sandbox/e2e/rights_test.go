//go:build unix && fleet

package e2e

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	cloudproviderapi "k8s.io/cloud-provider/api"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/provider"
	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/cluster"
)

// TestRightsAreExact lets the manager live through everything that it does, under the published role and the published RAM
// policy. Neither the API server nor the cloud refuses anything, and of the role nothing is left over.
func TestRightsAreExact(t *testing.T) {
	t.Parallel()
	audit := filepath.Join(t.TempDir(), "audit.log")
	config := cloud.DefaultConfig()
	config.AccessKeys = []cloud.AccessKeyConfig{{ID: cluster.AccessKeyID, Secret: cluster.AccessKeySecret, Permissions: publishedPolicy(t)}}
	w := newWorld(t, worldOptions{nodes: 4, cloud: config, up: []string{"--audit-log", audit}})
	port := testkit.FreePort(t)
	w.startManager(slices.Concat(routed, []string{fmt.Sprintf("--secure-port=%d", port), "--node-gone-confirmations=2", "--node-gone-over=1s",
		// In a pod these are not needed: there the program finds its own identity.
		"--authentication-kubeconfig=" + w.as.Kubeconfig, "--authorization-kubeconfig=" + w.as.Kubeconfig})...)

	w.nodesAreInitialized(names(1, 4))
	w.until("routes of 4 nodes", eventDeadline, func(context.Context) string { return atLeast(len(w.entries()), 4) })
	w.serviceComesAndGoes()
	w.admin(http.MethodDelete, "instances/"+instanceID(4), nil, nil)
	w.until("a node leaves with its instance", eventDeadline, func(ctx context.Context) string {
		if _, there := w.nodes(ctx)[nodeName(4)]; there {
			return "its Node is there"
		}
		return ""
	})
	w.admin(http.MethodPut, "instances/"+instanceID(3), map[string]string{"Status": "Stopped"}, nil)
	w.until("a stopped instance has its event", eventDeadline, func(ctx context.Context) string {
		if node := w.nodes(ctx)[nodeName(3)]; node == nil || !tainted(node, cloudproviderapi.TaintNodeShutdown) {
			return "no shutdown taint"
		}
		return ""
	})
	w.askForMetrics(port)
	w.stopManager()

	for _, call := range w.calls(0) {
		if call.Code == "Forbidden.RAM" {
			t.Errorf("the published RAM policy lacks %s:%s", call.Product, call.Action)
		}
	}
	w.checkAudit(audit)
}

func atLeast(have, want int) string {
	if have >= want {
		return ""
	}
	return fmt.Sprintf("%d of %d", have, want)
}

// publishedPolicy is what the file for users allows.
func publishedPolicy(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("../../docs/reference/ram-policy.json")
	if err != nil {
		t.Fatal(err)
	}
	var policy struct{ Statement []struct{ Action []string } }
	if err := json.Unmarshal(text, &policy); err != nil || len(policy.Statement) != 1 {
		t.Fatalf("%d statements, %v", len(policy.Statement), err)
	}
	return policy.Statement[0].Action
}

// serviceComesAndGoes makes a Service with an address and deletes it.
func (w *world) serviceComesAndGoes() {
	w.Helper()
	services := w.client.CoreV1().Services(metav1.NamespaceDefault)
	_, err := services.Create(w.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeLoadBalancer, Ports: []corev1.ServicePort{{Port: 80}}, Selector: map[string]string{"app": "web"},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		w.Fatal(err)
	}
	w.until("the Service has an address", eventDeadline, func(ctx context.Context) string {
		svc, err := services.Get(ctx, "web", metav1.GetOptions{})
		if err != nil || len(svc.Status.LoadBalancer.Ingress) == 0 {
			return fmt.Sprintf("no address, %v", err)
		}
		return ""
	})
	if err := services.Delete(w.Context(), "web", metav1.DeleteOptions{}); err != nil {
		w.Fatal(err)
	}
	w.until("the Service is gone", eventDeadline, func(ctx context.Context) string {
		if _, err := services.Get(ctx, "web", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Sprintf("still there, %v", err)
		}
		return ""
	})
}

// askForMetrics asks with the manager's own token, which the API server knows and to which it grants no metrics.
func (w *world) askForMetrics(port int) {
	w.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", w.as.Kubeconfig)
	if err != nil {
		w.Fatal(err)
	}
	client := &http.Client{
		Timeout: 10 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}, //nolint:gosec // its certificate is its own
	}
	defer client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(w.Context(), http.MethodGet, fmt.Sprintf("https://127.0.0.1:%d/metrics", port), http.NoBody)
	if err != nil {
		w.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+config.BearerToken)
	answer, err := client.Do(request)
	if err != nil {
		w.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusForbidden {
		w.Errorf("metrics for a token without the right: %s, want 403", answer.Status)
	}
}

// checkAudit compares what the API server saw of the manager with the table of rights.
func (w *world) checkAudit(path string) {
	w.Helper()
	used, refused := w.readAudit(path)
	for _, what := range refused {
		w.Errorf("the published role lacks %s", what)
	}
	granted := map[string]bool{}
	for _, set := range provider.Rights() {
		for _, right := range set.Rights {
			for _, verb := range right.Verbs {
				name := verb + " " + right.Resource + "." + right.Group
				granted[name] = true
				if !used[name] && !slices.Contains(right.Rare, verb) {
					w.Errorf("nothing used the right of %s to %s", set.Feature, name)
				}
			}
		}
	}
	w.Logf("%d rights of %d were used", len(used), len(granted))
}

// readAudit returns what was asked for and allowed, and what was refused.
func (w *world) readAudit(path string) (used map[string]bool, refused []string) {
	w.Helper()
	file, err := os.Open(path)
	if err != nil {
		w.Fatal(err)
	}
	defer file.Close()
	used = map[string]bool{}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var event struct {
			Verb           string
			User           struct{ Username string }
			ObjectRef      struct{ Resource, Subresource, APIGroup string }
			ResponseStatus struct{ Code int }
		}
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			w.Fatal(err)
		}
		if event.User.Username != "system:serviceaccount:"+strings.Replace(w.as.Account, "/", ":", 1) || event.ObjectRef.Resource == "" {
			continue
		}
		resource := event.ObjectRef.Resource
		if event.ObjectRef.Subresource != "" {
			resource += "/" + event.ObjectRef.Subresource
		}
		name := event.Verb + " " + resource + "." + event.ObjectRef.APIGroup
		if event.ResponseStatus.Code == http.StatusForbidden {
			refused = append(refused, name)
			continue
		}
		used[name] = true
	}
	if err := lines.Err(); err != nil {
		w.Fatal(err)
	}
	slices.Sort(refused)
	return used, slices.Compact(refused)
}
