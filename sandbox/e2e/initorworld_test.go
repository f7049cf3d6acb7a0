//go:build unix

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// initorWorld is a sandbox whose light kubelets really run the pods of provider-initor, with the roles that those have.
type initorWorld struct {
	*testing.T
	dir    string // for the test's files
	admin  string // the administrator's kubeconfig
	up     string // the sandbox's directory
	client kubernetes.Interface
	p      *program
}

// newInitorWorld starts a sandbox with one machine on premises, idc-1. More arguments are those of "sandbox up".
func newInitorWorld(t *testing.T, args ...string) *initorWorld {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "sandbox")
	p := start(t, t.TempDir(), append([]string{
		"up", "--nodes", "0", "--on-premises", "1", "--node-ip", "--bin-dir", binDir, "--dir", dir}, args...)...)
	p.untilReady()
	return &initorWorld{T: t, dir: t.TempDir(), admin: filepath.Join(dir, "kubeconfig"), up: dir, client: clientOf(t, dir), p: p}
}

// addFiveNodes adds, beside idc-1, a cordoned and tainted node, one that has its ID, and one of virtual-kubelet; with those four it adds
// an ordinary one.
func (w *initorWorld) addFiveNodes() {
	w.Helper()
	w.addMachine("plain")
	w.addMachine("done")
	w.setProviderID("done", "cn-hangzhou.i-done")
	w.addMachine("cordoned")
	w.patch("cordoned", `{"spec":{"unschedulable":true}}`)
	if out, err := w.kubectl("taint", "node", "cordoned", "dedicated=gpu:NoExecute"); err != nil {
		w.Fatalf("taint a node: %v\n%s", err, out)
	}
	virtual := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "virtual", Labels: map[string]string{"type": "virtual-kubelet"}}}
	if _, err := w.client.CoreV1().Nodes().Create(w.Context(), virtual, metav1.CreateOptions{}); err != nil {
		w.Fatal(err)
	}
}

// addMachine adds the instance i-NAME and waits for its node.
func (w *initorWorld) addMachine(name string) {
	w.Helper()
	admin(w.T, w.up, http.MethodPut, "instances/i-"+name, fmt.Sprintf(`{"InstanceName":%q}`, name))
	w.p.until("node "+name+" joins", eventDeadline, func(ctx context.Context) bool { return ready(ctx, w.client)[name] })
}

func (w *initorWorld) setProviderID(name, id string) {
	w.Helper()
	w.patch(name, fmt.Sprintf(`{"spec":{"providerID":%q}}`, id))
}

func (w *initorWorld) patch(name, patch string) {
	w.Helper()
	_, err := w.client.CoreV1().Nodes().Patch(w.Context(), name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil {
		w.Fatal(err)
	}
}

// initor runs provider-initor as an administrator does.
func (w *initorWorld) initor(args ...string) (code int, stdout, stderr string) {
	w.Helper()
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(w.Context(), filepath.Join(binDir, "provider-initor"), append(args, "--kubeconfig="+w.admin)...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		w.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

func (w *initorWorld) kubectl(args ...string) (string, error) {
	w.Helper()
	kubectl := filepath.Join(binDir, "kubectl")
	out, err := exec.CommandContext(w.Context(), kubectl, append(args, "--kubeconfig="+w.admin)...).CombinedOutput()
	return string(out), err
}

func (w *initorWorld) apply(manifest string) {
	w.Helper()
	if out, err := w.kubectl("apply", "-f", w.file("manifest.yaml", manifest)); err != nil {
		w.Fatalf("kubectl apply: %v\n%s", err, out)
	}
}

func (w *initorWorld) file(name, text string) string {
	w.Helper()
	path := filepath.Join(w.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		w.Fatal(err)
	}
	return path
}

// wantNodes compares the JSON of run or status with "result providerID" of each node.
func (w *initorWorld) wantNodes(what, stdout string, want map[string]string) {
	w.Helper()
	if diff := cmp.Diff(want, nodesOf(stdout)); diff != "" {
		w.Errorf("%s (-want +got):\n%s\n%s", what, diff, stdout)
	}
}

// nodesOf reads the JSON of run or status.
func nodesOf(stdout string) map[string]string {
	var document struct {
		Nodes []struct{ Node, ProviderID, Result, Reason string }
	}
	if err := json.Unmarshal([]byte(stdout), &document); err != nil {
		return map[string]string{"not JSON": err.Error()}
	}
	nodes := map[string]string{}
	for _, n := range document.Nodes {
		nodes[n.Node] = strings.TrimSpace(n.Result + " " + n.ProviderID)
	}
	return nodes
}

func (w *initorWorld) wantNothingLeft(resources ...string) {
	w.Helper()
	for _, resource := range append(resources,
		"validatingadmissionpolicies", "validatingadmissionpolicybindings", "serviceaccounts", "clusterroles.rbac.authorization.k8s.io",
		"clusterrolebindings.rbac.authorization.k8s.io", "jobs.batch") {
		out, err := w.kubectl("get", resource, "-A", "-o", "name", "-l", "app.kubernetes.io/managed-by=provider-initor")
		if err != nil || out != "" {
			w.Errorf("left of %s: %v\n%s", resource, err, out)
		}
	}
}
