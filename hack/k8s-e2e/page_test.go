package main

import (
	"os"
	"regexp"
	"testing"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/golden"
)

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
	golden.Fresh(t, pagePath, page(string(version[1]), entries))
}
