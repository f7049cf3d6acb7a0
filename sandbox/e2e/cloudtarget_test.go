//go:build unix

package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/e2e/account"
)

// e2eCloud is make e2e-cloud with the programs under test.
func e2eCloud(ctx context.Context, variables ...string) *exec.Cmd {
	args := []string{"--no-print-directory", "-C", filepath.Join("..", ".."), "-o", "build", "e2e-cloud", "BIN=" + binDir}
	cmd := exec.CommandContext(ctx, "make", append(args, variables...)...)
	cmd.Env = append(os.Environ(), "KUBECONFIG=", "CLOUD_CONFIG=", "E2E_SANDBOX=", "CONFIRM=", "CLEAN=")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd
}

// TestE2ECloudTarget runs make e2e-cloud as a user does: it first only says what it would do, then is killed in the middle, refuses to
// start on what is left, removes that, and runs to its end. Nothing remains.
func TestE2ECloudTarget(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	dir := upForStories(t)
	w, here := storiesIn(t, dir), "E2E_SANDBOX="+dir

	out, err := e2eCloud(t.Context(), here).CombinedOutput()
	for _, want := range []string{"slb CreateLoadBalancer", "together at most", "CONFIRM=yes"} {
		if err != nil || !strings.Contains(string(out), want) {
			t.Fatalf("the dry run lacks %q, %v:\n%s", want, err, out)
		}
	}
	w.nothingRemains()

	killed := e2eCloud(t.Context(), here, "CONFIRM=yes")
	if err = killed.Start(); err != nil {
		t.Fatal(err)
	}
	err = wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 3*time.Minute, true, func(context.Context) (bool, error) {
		return len(w.remains().LoadBalancers) > 0, nil
	})
	if err != nil {
		t.Error("no load balancer is made:", err)
	}
	if err = syscall.Kill(-killed.Process.Pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err = killed.Wait(); err == nil {
		t.Error("the run ended before it was killed")
	}
	if out, err = e2eCloud(t.Context(), here).CombinedOutput(); err == nil || !strings.Contains(string(out), "CLEAN=yes removes") {
		t.Errorf("a dry run beside what is left: %v\n%s", err, out)
	}
	if out, err = e2eCloud(t.Context(), here, "CLEAN=yes").CombinedOutput(); err != nil {
		t.Fatalf("%v:\n%s", err, out)
	}
	w.nothingRemains()

	out, err = e2eCloud(t.Context(), here, "CONFIRM=yes").CombinedOutput()
	if err != nil {
		t.Errorf("%v:\n%s", err, out)
	}
	for _, story := range account.Stories() {
		if want := "--- PASS: TestAccount/" + story.Name; !strings.Contains(string(out), want) {
			t.Errorf("the output lacks %q", want)
		}
	}
	w.nothingRemains()
}

// TestE2ECloudNamesWhatIsMissing: each thing that a user forgets is named, before anything is built or made.
func TestE2ECloudNamesWhatIsMissing(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	dir := upForStories(t)
	kubeconfig, cloudConfig := filepath.Join(dir, "kubeconfig"), filepath.Join(dir, "cloud-config.conf")
	text, err := os.ReadFile(cloudConfig)
	if err != nil {
		t.Fatal(err)
	}
	changed := func(old, replacement string) string {
		path := filepath.Join(t.TempDir(), "cloud-config.conf")
		if !strings.Contains(string(text), old) {
			t.Fatalf("the cloud-config lacks %q:\n%s", old, text)
		}
		if err := os.WriteFile(path, []byte(strings.ReplaceAll(string(text), old, replacement)), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for name, test := range map[string]struct{ kubeconfig, cloudConfig, want string }{
		"no kubeconfig":             {"", cloudConfig, "KUBECONFIG is not set to a file"},
		"no cloud-config":           {kubeconfig, "", "CLOUD_CONFIG is not set to a file"},
		"a file that is not there":  {kubeconfig, cloudConfig + ".old", "CLOUD_CONFIG is not set to a file"},
		"no VPC":                    {kubeconfig, changed(`vpc-emulator`, ""), "has to name region and vpcid"},
		"a VPC that does not exist": {kubeconfig, changed("vpc-emulator", "vpc-nowhere"), "the VPC vpc-nowhere has no vSwitch"},
	} {
		cmd := e2eCloud(t.Context(), "KUBECONFIG="+test.kubeconfig, "CLOUD_CONFIG="+test.cloudConfig)
		cmd.Env = append(cmd.Env, "ALICLOUD_CLIENT_SCHEME=HTTP")
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), test.want) {
			t.Errorf("%s: %v, want %q:\n%s", name, err, test.want, out)
		}
	}
}
