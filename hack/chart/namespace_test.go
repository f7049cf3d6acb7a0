package chart

import (
	"context"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// strictNamespace admits only pods of the "restricted" Pod Security Standard that say what they need, within bounds.
const strictNamespace = `kubectl apply -f - <<'YAML'
apiVersion: v1
kind: Namespace
metadata:
  name: strict
  labels: {pod-security.kubernetes.io/enforce: restricted}
---
apiVersion: v1
kind: LimitRange
metadata: {name: bounds, namespace: strict}
spec:
  limits:
  - type: Container
    min: {cpu: 50m, memory: 32Mi}
    max: {cpu: "2", memory: 1Gi}
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: quota, namespace: strict}
spec:
  hard: {requests.cpu: "1", requests.memory: 1Gi, limits.cpu: "4", limits.memory: 4Gi, pods: "5"}
YAML`

// TestStrictNamespace installs into a namespace with rules, off the node's network.
func TestStrictNamespace(t *testing.T) {
	t.Parallel()
	s := newSandbox(t, helm4)
	s.must(strictNamespace)
	for _, sets := range []string{"routes.enabled=false",
		"routes.enabled=false,hostNetwork=false,initializer.enabled=true,initializer.driver=job"} {
		got := s.shell("helm install ccm charts/cloud-controller-manager --namespace strict --set " + sets)
		if got.code == 0 || !strings.Contains(got.stderr, "restricted") || !strings.Contains(got.stderr, "kubectl label namespace strict") {
			t.Errorf("%s where pods of the node's network are not admitted: exit code %d, %s", sets, got.code, got.stderr)
		}
	}
	s.must("helm install ccm charts/cloud-controller-manager --namespace strict --set routes.enabled=false,hostNetwork=false,networkPolicy.enabled=true")
	s.until("the Deployment has its pods", func(ctx context.Context) string {
		d, err := s.client.AppsV1().Deployments("strict").Get(ctx, "cloud-controller-manager", metav1.GetOptions{})
		if err != nil || d.Status.Replicas != 2 {
			return fmt.Sprint(err, d.Status.Conditions)
		}
		return ""
	})
	job := s.must("helm get hooks ccm --namespace strict")
	if got := s.shell("kubectl create --dry-run=server -f - <<'YAML'\n" + job + "\nYAML"); got.code != 0 || got.stderr != "" {
		t.Errorf("the test of the release is not admitted without warning: %s%s", got.stdout, got.stderr)
	}
}
