package cluster

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/realnode"
)

// TestFailureSaysWhy: a sandbox that does not start names the last error of each machine, and keeps the logs. One that has written nothing
// leaves nothing.
func TestFailureSaysWhy(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	f, err := openDir(filepath.Join(t.TempDir(), "dir"))
	if err != nil {
		t.Fatal(err)
	}
	if got := f.keepLogs(); got != "" {
		t.Errorf("without logs: %q", got)
	}
	logs := filepath.Join(f.statePath(machinesDir), "i-1", "var", "log")
	if err := os.MkdirAll(logs, 0o700); err != nil {
		t.Fatal(err)
	}
	const fatal = `E1128 01:02:03.000000 7 run.go:72] "command failed" err="inotify_init: too many open files"`
	for name, text := range map[string]string{
		"kubelet.log":    "I1128 01:02:02.000000 begin\n" + fatal + "\nI1128 01:02:04.000000 end\n",
		"containerd.log": "time=x level=info msg=fine\n",
	} {
		if err := os.WriteFile(filepath.Join(logs, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const complaint = realnode.Complaint + "boot node-3: no space left on device"
	if _, err := f.log.WriteString("I1128 01:02:02.000000 begin\n" + complaint + "\n"); err != nil {
		t.Fatal(err)
	}
	got := f.keepLogs()
	if err := f.remove(); err != nil {
		t.Error(err)
	}
	first, rest, _ := strings.Cut(got, "\n")
	content, err := os.ReadFile(filepath.Join(strings.TrimPrefix(first, "the logs are in "), "machines-i-1-var-log-kubelet.log"))
	if rest != complaint+"\nmachine i-1, kubelet.log: "+fatal || err != nil || !strings.Contains(string(content), fatal) {
		t.Errorf("%s; the log: %q, %v", got, content, err)
	}
}
