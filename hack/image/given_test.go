package main

import (
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
)

// TestGivenBinaries: images are made of given programs as they are, and programs that would not run in an image are refused.
func TestGivenBinaries(t *testing.T) {
	t.Parallel()
	binary, dir := ownBinary(t), t.TempDir()
	for _, p := range programs {
		if err := os.WriteFile(filepath.Join(dir, p.name), binary, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	opts := options{binaries: dir, out: filepath.Join(t.TempDir(), "out"), version: "v1.2.3", repository: "registry.example.com",
		architectures: []string{runtime.GOARCH}}
	err := run(t.Context(), opts)
	if !isStatic(t) {
		if err == nil || !strings.Contains(err.Error(), "CGO_ENABLED=1") {
			t.Errorf("a program that needs a C library: %v", err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if names, err := filepath.Glob(filepath.Join(opts.out, "*.tar")); err != nil || len(names) != len(programs) {
		t.Errorf("archives %v, %v", names, err)
	}
	opts.architectures = []string{"other"}
	if err := run(t.Context(), opts); err == nil || !strings.Contains(err.Error(), "GOARCH="+runtime.GOARCH) {
		t.Errorf("for another architecture: %v", err)
	}
}

// isStatic reports whether this program was built like those of images.
func isStatic(t *testing.T) bool {
	t.Helper()
	info, ok := debug.ReadBuildInfo()
	if !ok {
		t.Fatal("this program does not say how it was built")
	}
	for _, setting := range info.Settings {
		if setting.Key == "CGO_ENABLED" {
			return setting.Value == "0"
		}
	}
	t.Fatal("this program does not say whether it uses C")
	return false
}
