//go:build unix

package controlplane

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestProgramThatEnds: an API server that ends at once ends the start, and is reported once.
func TestProgramThatEnds(t *testing.T) {
	t.Parallel()
	programs := t.TempDir()
	if err := os.WriteFile(filepath.Join(programs, "kube-apiserver"), []byte("#!/bin/sh\nexit 1\n"), 0o755); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	_, err := Start(t.Context(), Options{
		Dir: t.TempDir(), ClusterCIDR: "10.244.0.0/16", ServiceCIDR: "10.96.0.0/16", NodeMonitorGrace: time.Minute, Programs: programs,
		Log: io.Discard,
	})
	if err == nil || strings.Count(err.Error(), "kube-apiserver ended by itself") != 1 {
		t.Errorf("error %v, want one that says once that the API server has ended", err)
	}
}
