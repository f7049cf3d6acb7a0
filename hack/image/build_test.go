//go:build build

package main

import (
	"bytes"
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

const testVersion = "v1.2.3"

// envSecondCache names a build cache for the second place in place of an empty one, which costs minutes.
const envSecondCache = "SECOND_GOCACHE"

// TestBuilds makes the images of the real programs in every way that there is.
func TestBuilds(t *testing.T) {
	one, other := checkout(t, "a"), checkout(t, "a-longer/name/of a directory")
	command(t, one, "umask 022; cd hack/image; exec go run . --root ../.. --version "+testVersion+" --out ../../dist")

	t.Run("another directory, umask, time zone, cache and taste give the same bytes", func(t *testing.T) {
		command(t, other,
			"umask 077; find . -exec touch -d 2001-02-03 {} +; cd hack/image; exec go run . --root ../.. --version "+testVersion+" --out ../../dist",
			"GOCACHE="+cmp.Or(os.Getenv(envSecondCache), t.TempDir()), "TZ=Asia/Shanghai", "GOAMD64=v3", "GOFLAGS=-tags=anything", "LC_ALL=C")
		for _, p := range programs {
			first, second := read(t, archiveOf(one, p)), read(t, archiveOf(other, p))
			if !bytes.Equal(first, second) {
				t.Errorf("%s.tar: %d and %d bytes, and they differ", p.name, len(first), len(second))
			}
		}
	})
	for _, architecture := range []string{"amd64", "arm64"} {
		t.Run("the Dockerfile's steps give the same files for "+architecture, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "out")
			command(t, one, "umask 022; "+strings.NewReplacer("/src", one, "/out", out).Replace(dockerfileRun(t)), "TARGETARCH="+architecture,
				"VERSION="+testVersion)
			for _, p := range programs {
				if diff := gocmp.Diff(filesOfImage(t, load(t, archiveOf(one, p), architecture)),
					filesOfTree(t, filepath.Join(out, p.name))); diff != "" {
					t.Errorf("%s: files of the image (-) and of the steps (+):\n%s", p.name, diff)
				}
			}
		})
	}
}

func archiveOf(root string, p program) string { return filepath.Join(root, "dist", p.name+".tar") }

// checkout copies what git knows, and what is changed, into a directory that begins with name.
func checkout(t *testing.T, name string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	command(t, "../..",
		`git ls-files -z --cached --others --exclude-standard | tar --create --null --files-from=- | tar --extract --directory="$TO"`, "TO="+dir)
	return dir
}

func command(t *testing.T, dir, script string, env ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", script)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", script, err, out)
	}
}

// dockerfileRun is the shell command of the Dockerfile's only RUN step.
func dockerfileRun(t *testing.T) string {
	t.Helper()
	found := ""
	for line := range strings.Lines(string(read(t, "Dockerfile"))) {
		if run, ok := strings.CutPrefix(line, "RUN "); ok {
			if found != "" {
				t.Fatal("the Dockerfile has several RUN steps, and this test runs one")
			}
			found = run
		}
	}
	return found
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// load returns the image for an architecture out of an archive, which it finds valid.
func load(t *testing.T, archive, architecture string) v1.Image {
	t.Helper()
	dir := t.TempDir()
	command(t, ".", `tar --extract --file="$FROM" --directory="$TO"`, "FROM="+archive, "TO="+dir)
	top, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(top); err != nil {
		t.Errorf("%s is not valid: %v", archive, err)
	}
	manifest, err := top.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	index, err := top.ImageIndex(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	if manifest, err = index.IndexManifest(); err != nil {
		t.Fatal(err)
	}
	for _, m := range manifest.Manifests {
		if m.Platform.Architecture == architecture {
			image, err := index.Image(m.Digest)
			if err != nil {
				t.Fatal(err)
			}
			return image
		}
	}
	t.Fatalf("%s has no image for %s", archive, architecture)
	return nil
}
