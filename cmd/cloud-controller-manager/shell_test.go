package main

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/selfexec"
)

// TestVersion: the version is that of this program, not that of Kubernetes.
func TestVersion(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	got := w.run(t, "--version")
	if got.Code != 0 || !regexp.MustCompile(`(?m)^cloud-controller-manager v\S+ \(commit \S+, go\S+, \w+/\w+\)$`).MatchString(got.Output) {
		t.Errorf("exit code %d, %q", got.Code, got.Output)
	}
}

func TestHelpListsTheCommands(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	got := w.run(t, "--help")
	for _, r := range reporters() {
		if got.Code != 0 || !regexp.MustCompile(`(?m)^  `+regexp.QuoteMeta(r.use)+` +`+regexp.QuoteMeta(r.short)+`$`).MatchString(got.Output) {
			t.Errorf("exit code %d, and the help does not list %s:\n%.600s", got.Code, r.use, got.Output)
		}
	}
}

// TestUnknownCommand: what is no command costs one line, which names the command that was probably meant.
func TestUnknownCommand(t *testing.T) {
	t.Parallel()
	for argument, want := range map[string]string{"docter": "did you mean doctor?", "nosuch": "see --help"} {
		want = fmt.Sprintf("cloud-controller-manager: unknown command %q; %s\n", argument, want)
		if got := selfexec.Run(t, "cloud-controller-manager", nil, argument); got.Code != 1 || got.Output != want {
			t.Errorf("%s: exit code %d, output %q, want %q", argument, got.Code, got.Output, want)
		}
	}
}

// TestReportsHonourKUBECONFIG: the commands for a workstation find the cluster by KUBECONFIG unless a flag names it.
func TestReportsHonourKUBECONFIG(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		env  func(w world) string
		args func(w world) []string
		code int
		want string
	}{
		"environment": {
			env:  func(w world) string { return w.kubeconfigFor(t, "http://127.0.0.1:1") },
			args: func(world) []string { return nil }, code: exitFindings, want: "127.0.0.1:1",
		},
		"flag wins": {
			env: func(world) string { return "/nowhere" },
			args: func(w world) []string {
				return []string{"--kubeconfig=" + w.kubeconfigFor(t, "http://127.0.0.1:1")}
			}, code: exitFindings, want: "127.0.0.1:1",
		},
		"two files": {
			env: func(world) string { return "/a:/b" }, args: func(world) []string { return nil }, code: 1, want: "KUBECONFIG names 2 files",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			args := append([]string{"doctor", "--cloud-config=" + w.file(t, cloudConfig(goodID, goodSecret, "cn-hangzhou")),
				"--cluster-cidr=10.244.0.0/16"}, test.args(w)...)
			got := selfexec.Run(t, "cloud-controller-manager", append(w.env(), "KUBECONFIG="+test.env(w)), args...)
			if got.Code != test.code || !strings.Contains(got.Output, test.want) {
				t.Errorf("exit code %d, want %d and output with %q:\n%s", got.Code, test.code, test.want, got.Output)
			}
		})
	}
}
