//go:build linux

package e2e

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// nobody is a user without rights.
const nobody = 65534

// Real machines need root and programs of other projects: the error names what is missing and how to get it, and nothing is left.
func TestRealMachinesSayWhatIsMissing(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		root bool
		path string
		want []string
	}{
		"without root": {false, os.Getenv("PATH"), []string{"real machines need root: run as root, or use light nodes"}},
		"without packages": {true, "/nowhere", []string{
			"containerd (apt-get install containerd)", "runc (apt-get install runc)", "nft (apt-get install nftables)",
		}},
	}
	for name, tt := range tests {
		for _, command := range []string{"up", "demo"} {
			t.Run(command+" "+name, func(t *testing.T) {
				t.Parallel()
				if tt.root && os.Geteuid() != 0 {
					t.Skip("needs root: without it, the missing root is the first error")
				}
				tmp := openDirectory(t)
				args := map[string][]string{
					"up": {"up", "--dir", filepath.Join(tmp, "dir")}, "demo": {"demo", "--bin-dir", tmp},
				}[command]
				cmd := exec.Command(filepath.Join(tmp, "sandbox"), append(args, "--node-kind", "real")...)
				cmd.Env = []string{"PATH=" + tt.path, "TMPDIR=" + tmp, "HOME=" + tmp}
				if !tt.root && os.Geteuid() == 0 {
					cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
				}
				var stderr bytes.Buffer
				cmd.Stderr = &stderr
				var ended *exec.ExitError
				if err := cmd.Run(); !errors.As(err, &ended) || ended.ExitCode() != 1 {
					t.Errorf("it ended with %v, want exit code 1", err)
				}
				for _, want := range tt.want {
					if !strings.Contains(stderr.String(), want) {
						t.Errorf("standard error does not say %q:\n%s", want, stderr.String())
					}
				}
				left, err := filepath.Glob(filepath.Join(tmp, "*"))
				if err != nil || len(left) != 4 {
					t.Errorf("there are %v, %v, want the four programs", left, err)
				}
			})
		}
	}
}

// openDirectory is one in which everybody may write, with the programs in it.
func openDirectory(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for path, mode := range map[string]os.FileMode{filepath.Dir(dir): 0o755, dir: 0o777} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"sandbox", "kubectl", "cloud-controller-manager", "provider-initor"} {
		content, err := os.ReadFile(filepath.Join(binDir, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
