package main

import (
	"flag"
	"os"
	"regexp"
	"testing"
)

var update = flag.Bool("update", false, "write the reference page")

const pagePath = "../../docs/reference/kubernetes-e2e.md"

// TestPageIsFresh compares the reference page with the table of specs.
func TestPageIsFresh(t *testing.T) {
	t.Parallel()
	module, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	version := regexp.MustCompile(`\tk8s\.io/kubernetes (v\S+)\n`).FindSubmatch(module)
	if version == nil {
		t.Fatal("go.mod names no version of k8s.io/kubernetes")
	}
	want := page(string(version[1]), specs)
	if *update {
		if err := os.WriteFile(pagePath, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(pagePath)
	if err != nil {
		t.Fatal(err)
	}
	if string(have) != want {
		t.Error("docs/reference/kubernetes-e2e.md is stale: run make generate")
	}
}
