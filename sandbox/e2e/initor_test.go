//go:build unix

package e2e

import (
	"context"
	"net/http"
	"os"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestInitorWithoutOpenKruise runs the workstation's commands against a real API server; the pods of its Jobs run provider-initor with
// the role that run makes.
func TestInitorWithoutOpenKruise(t *testing.T) {
	t.Parallel()
	w := newInitorWorld(t)
	w.addFiveNodes()
	w.addMachine("other")
	w.setProviderID("other", "cn-hangzhou.i-another")

	if code, _, stderr := w.initor("run"); code != 1 || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, "--driver job") {
		w.Errorf("run without OpenKruise: exit code %d with %q, want 1 and one line that offers --driver job", code, stderr)
	}
	code, stdout, _ := w.initor("check")
	if code != 4 || !strings.Contains(stdout, "plain     -                      missing") || strings.Contains(stdout, "virtual") {
		w.Errorf("check: exit code %d with\n%s\nwant 4, and the node without ID missing", code, stdout)
	}

	code, stdout, stderr := w.initor("run", "--driver", "job", "--timeout", "90s", "--output", "json")
	w.wantNodes("run --driver job", stdout, map[string]string{
		"plain": "set cn-hangzhou.i-plain", "done": "unchanged cn-hangzhou.i-done", "cordoned": "set cn-hangzhou.i-cordoned",
		"other": "failed cn-hangzhou.i-another", "idc-1": "skipped",
	})
	if code != 4 || !strings.Contains(stderr, "1 of 5 failed") {
		w.Errorf("run --driver job: exit code %d, want 4 for the failed node; standard error:\n%s", code, stderr)
	}
	w.wantNothingLeft()
	w.saysWhyThereAreNoPods()
	w.looksUpByAddress()
	w.p.stop()
}

// saysWhyThereAreNoPods: a namespace that admits no pods with hostNetwork.
func (w *initorWorld) saysWhyThereAreNoPods() {
	w.Helper()
	w.apply(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"baseline","labels":{"pod-security.kubernetes.io/enforce":"baseline"}}}`)
	p := launch(w.T, "provider-initor", nil, "run", "--driver", "job", "--namespace", "baseline", "--kubeconfig="+w.admin)
	p.until("the reason is shown", eventDeadline, func(context.Context) bool {
		return strings.Contains(p.stderr.String(), "violates PodSecurity")
	})
	if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
		w.Fatal(err)
	}
	if code := p.wait(stopDeadline); code == 0 {
		w.Errorf("an interrupted run: exit code %d", code)
	}
}

// looksUpByAddress is for an instance whose metadata service is switched off: ECS knows it by its address, if the pods may read the
// manager's cloud-config.
func (w *initorWorld) looksUpByAddress() {
	w.Helper()
	for _, name := range []string{"other", "done"} {
		if err := w.client.CoreV1().Nodes().Delete(w.Context(), name, metav1.DeleteOptions{}); err != nil {
			w.Fatal(err)
		}
	}
	admin(w.T, w.up, http.MethodPut, "instances/i-hidden", `{"InstanceName":"hidden","HttpEndpoint":"disabled"}`)
	w.p.until("node hidden joins", eventDeadline, func(ctx context.Context) bool { return ready(ctx, w.client)["hidden"] })
	w.apply(cloudConfigAndRole)
	want := map[string]string{
		"plain": "unchanged cn-hangzhou.i-plain", "cordoned": "unchanged cn-hangzhou.i-cordoned", "idc-1": "skipped", "hidden": "skipped",
	}
	_, stdout, _ := w.initor("run", "--driver", "job", "--timeout", "90s", "--output", "json")
	w.wantNodes("run without the right to read the cloud-config", stdout, want)
	if out, err := w.kubectl("create", "rolebinding", "-n", "kube-system", "read-cloud-config", "--role=read-cloud-config",
		"--serviceaccount=kube-system:provider-initor-run"); err != nil {
		w.Fatalf("grant the right: %v\n%s", err, out)
	}
	want["hidden"] = "set cn-hangzhou.i-hidden"
	code, stdout, stderr := w.initor("run", "--driver", "job", "--timeout", "90s", "--output", "json")
	w.wantNodes("run with the right to read the cloud-config", stdout, want)
	if code != 0 {
		w.Errorf("run: exit code %d, want 0; standard error:\n%s", code, stderr)
	}
}

const cloudConfigAndRole = `apiVersion: v1
kind: ConfigMap
metadata: {name: cloud-config, namespace: kube-system}
data:
  cloud-config.conf: |
    {"Global":{"accessKeyID":"ZW11bGF0b3I=","accessKeySecret":"ZW11bGF0b3Itc2VjcmV0","region":"cn-hangzhou","vpcid":"vpc-emulator"}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: read-cloud-config, namespace: kube-system}
rules:
- {apiGroups: [""], resources: [configmaps], resourceNames: [cloud-config], verbs: [get]}
`
