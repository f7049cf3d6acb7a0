// Package buildinfo says which build of a program runs.
package buildinfo

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"k8s.io/component-base/version"
)

// Line is the answer of a program to --version: program, version, commit, Go version and platform, in one line. The commit is unknown in a
// program that was built outside of a Git checkout.
func Line(program, programVersion string) string {
	return fmt.Sprintf("%s %s (commit %s, %s, %s/%s)", program, programVersion, commit(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// Version is the version that the linker was given.
func Version() string { return version.Get().GitVersion }

func commit() string {
	if given := version.Get().GitCommit; given != "" && !strings.HasPrefix(given, "$") { // the placeholder of git archive
		return given
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	revision, modified := "unknown", ""
	for _, setting := range info.Settings {
		switch setting.Key {
		case "vcs.revision":
			revision = setting.Value
		case "vcs.modified":
			if setting.Value == "true" {
				modified = "-dirty"
			}
		}
	}
	return revision + modified
}
