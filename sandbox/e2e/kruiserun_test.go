//go:build linux && kruise

package e2e

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestRunWithOpenKruise runs the workstation's commands as an administrator does.
func TestRunWithOpenKruise(t *testing.T) {
	w := newKruiseWorld(t)
	w.addFiveNodes()
	code, stdout, stderr := w.initor("run", "--timeout", "90s", "--output", "json")
	w.wantNodes("run", stdout, map[string]string{
		"plain": "set cn-hangzhou.i-plain", "done": "unchanged cn-hangzhou.i-done", "cordoned": "set cn-hangzhou.i-cordoned", "idc-1": "skipped",
	})
	if code != 0 {
		t.Errorf("run: exit code %d, want 0; standard error:\n%s", code, stderr)
	}
	for i := range 4 {
		if line := fmt.Sprintf("%d/4 ", i+1); !strings.Contains(stderr, line) {
			t.Errorf("progress has no line for each node, %q is missing:\n%s", line, stderr)
		}
	}
	w.wantNothingLeft(broadcastJob)
	if exit, out, errs := w.initor("check", "--cloud-config", w.cloudConfig()); exit != 0 || !strings.Contains(out, "not-ecs") {
		t.Errorf("check: exit code %d, want 0 and the machine on premises not-ecs:\n%s%s", exit, out, errs)
	}
	w.failsOnConflict()
	w.keeps()
	w.p.stop()
}

// cloudConfig lets check ask the emulated ECS.
func (w *initorWorld) cloudConfig() string {
	w.Helper()
	url, err := os.ReadFile(w.up + "/emulator")
	if err != nil {
		w.Fatal(err)
	}
	w.Setenv("ECS_ENDPOINT", strings.TrimSpace(string(url)))
	w.Setenv("ALICLOUD_CLIENT_SCHEME", "HTTP")
	return w.file("cloud-config.conf",
		`{"Global":{"accessKeyID":"ZW11bGF0b3I=","accessKeySecret":"ZW11bGF0b3Itc2VjcmV0","region":"cn-hangzhou","vpcid":"vpc-emulator"}}`)
}

func (w *initorWorld) failsOnConflict() {
	w.Helper()
	w.addMachine("other")
	w.setProviderID("other", "cn-hangzhou.i-another")
	code, stdout, stderr := w.initor("run", "--timeout", "90s")
	if code != 4 || !strings.Contains(stdout, `spec.providerID is "cn-hangzhou.i-another"`) {
		w.Errorf("run with a foreign ID: exit code %d, want 4 and the reason:\n%s%s", code, stdout, stderr)
	}
	w.wantNothingLeft(broadcastJob)
	if err := w.client.CoreV1().Nodes().Delete(w.Context(), "other", metav1.DeleteOptions{}); err != nil {
		w.Fatal(err)
	}
}

func (w *initorWorld) keeps() {
	w.Helper()
	if code, stdout, stderr := w.initor("run", "--keep", "--timeout", "90s"); code != 0 {
		w.Fatalf("run --keep: exit code %d with\n%s\n%s", code, stdout, stderr)
	}
	w.addMachine("late")
	w.p.until("status shows the node that joined later", eventDeadline, func(context.Context) bool {
		code, stdout, _ := w.initor("status")
		return code == 0 && strings.Contains(stdout, "late      cn-hangzhou.i-late      set")
	})
	// Under another name: OpenKruise's webhook has filled in defaults, and another manager of the same object conflicts with those.
	_, manifest, _ := w.initor("manifest", "--keep", "--name", "by-hand")
	out, err := w.kubectl("apply", "--server-side", "--dry-run=server", "-f", w.file("initor.yaml", manifest))
	if err != nil || !strings.Contains(out, "broadcastjob.apps.kruise.io/by-hand") {
		w.Errorf("kubectl apply of the manifest: %v\n%s", err, out)
	}
	if code, stdout, stderr := w.initor("run", "--timeout", "90s"); code != 0 {
		w.Errorf("run after run --keep: exit code %d with\n%s\n%s", code, stdout, stderr)
	}
	w.wantNothingLeft(broadcastJob)
}
