package main

import (
	"os"
	"regexp"
	"slices"
	"testing"
)

// kubernetes finds the versions of Kubernetes' modules in a go.mod.
var kubernetes = regexp.MustCompile(`\tk8s\.io/(?:kubernetes v\S+|\S+ => \S+ v\S+)\n`)

// TestVersionsAreThoseOfTheSandbox holds both modules to one Kubernetes: the specs are those of the API server that they test, and it is
// compiled once.
func TestVersionsAreThoseOfTheSandbox(t *testing.T) {
	t.Parallel()
	versions := func(path string) []string {
		module, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return kubernetes.FindAllString(string(module), -1)
	}
	have, want := versions("go.mod"), versions("../../sandbox/go.mod")
	slices.Sort(have)
	slices.Sort(want)
	if len(want) < 2 || !slices.Equal(have, want) {
		t.Errorf("go.mod has %q, and the sandbox's %q", have, want)
	}
}
