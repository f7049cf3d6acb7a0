package main

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
)

// TestUpRefusesBadFlags: a value that cannot work is one error at once, and no cluster that never becomes ready.
func TestUpRefusesBadFlags(t *testing.T) {
	t.Parallel()
	for flag, want := range map[string]string{
		"--pod-cidr=10.0.0.0/99":             `"10.0.0.0/99"`,
		"--pod-cidr=10.244.0.0/25":           "at least a /24",
		"--pod-cidr=10.244.1.0/16":           `"10.244.1.0/16"`,
		"--pod-cidr=10.244.0.0/16,fd00::/96": `"fd00::/96"`,
		"--pod-cidr=10.244.0.0/24":           "room for 1 nodes, and 3 are to start",
		"--pod-cidr=,":                       `""`,
		"--rate-limits=some":                 `"some"`,
		"--latency=-1s":                      "0 or more",
		"--nodes=-1":                         "--nodes",
		"--nodes=100000":                     "--nodes is 100000, and there are 100000 nodes of all kinds: at most 32768 are accepted",
		"--on-premises=40000":                "40003 nodes of all kinds: at most 32768",
		"--kubernetes=/nope":                 `--kubernetes: "/nope": a directory with kube-apiserver`,
		"--node-kind=virtual":                "virtual",
	} {
		command := newCommand()
		command.SetArgs([]string{"up", "--dir", t.TempDir(), flag})
		command.SetOut(&bytes.Buffer{})
		command.SetErr(&bytes.Buffer{})
		if err := command.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error that names %s", flag, err, want)
		}
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	command := newCommand()
	command.SetArgs([]string{"--version"})
	command.SetOut(&out)
	if err := command.Execute(); err != nil ||
		!regexp.MustCompile(`^sandbox with Kubernetes v\S+ \(commit \S+, go\S+, \w+/\w+\)\n$`).MatchString(out.String()) {
		t.Errorf("%v, %q", err, out.String())
	}
}

// TestKubectlIsAProgramOfItsOwn: without it, one line says how to get it.
func TestKubectlIsAProgramOfItsOwn(t *testing.T) {
	t.Parallel()
	command := newCommand()
	command.SetArgs([]string{"kubectl", "get", "--raw", "/"})
	command.SetErr(&bytes.Buffer{})
	if err := command.Execute(); err == nil || !strings.Contains(err.Error(), "make kubectl") {
		t.Errorf("%v, want an error that names make kubectl", err)
	}
}
