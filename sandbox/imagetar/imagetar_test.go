package imagetar

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// files is what a tar file holds, links as "-> target".
func files(t *testing.T, from io.Reader) map[string]string {
	t.Helper()
	all := map[string]string{}
	for r := tar.NewReader(from); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if all[header.Name] = string(content); header.Typeflag == tar.TypeSymlink {
			all[header.Name] = "-> " + header.Linkname
		}
	}
}

// written writes an archive, and returns its files and the manifest of each image.
func written(t *testing.T, path string, images []Image) (map[string]string, []manifest) {
	t.Helper()
	if err := Write(path, images); err != nil {
		t.Fatal(err)
	}
	archive, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	all := files(t, archive)
	var manifests []manifest
	if err := json.Unmarshal([]byte(all["manifest.json"]), &manifests); err != nil || len(manifests) != len(images) {
		t.Fatalf("manifest %s: %v", all["manifest.json"], err)
	}
	return all, manifests
}

func TestArchive(t *testing.T) {
	t.Parallel()
	binary := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(binary, []byte("binary"), 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "images.tar")
	names := []string{"registry.example.com/a:1", "registry.example.com/b:1"}
	tool := filepath.Join(t.TempDir(), "tool")
	if err := os.WriteFile(tool, []byte("tool"), 0o755); err != nil {
		t.Fatal(err)
	}
	all, manifests := written(t, path, []Image{{
		Names: names, Binary: binary, Paths: []string{"usr/bin/a", "b"}, Args: []string{"x"}, Env: []string{"A=1"}, User: "1:1",
		Files: map[string]string{"bin/tool": tool},
	}})
	if diff := cmp.Diff(names, manifests[0].RepoTags); diff != "" {
		t.Errorf("names differ (-want +got):\n%s", diff)
	}
	layer := all[manifests[0].Layers[0]]
	if diff := cmp.Diff(map[string]string{"usr/bin/a": "binary", "b": "-> /usr/bin/a", "bin/tool": "tool"},
		files(t, bytes.NewReader([]byte(layer)))); diff != "" {
		t.Errorf("files differ (-want +got):\n%s", diff)
	}
	var config struct {
		Config struct {
			Entrypoint, Cmd, Env []string
			User                 string
		} `json:"config"`
		RootFS struct {
			DiffIDs []string `json:"diff_ids"`
		} `json:"rootfs"`
	}
	if err := json.Unmarshal([]byte(all[manifests[0].Config]), &config); err != nil {
		t.Fatal(err)
	}
	if config.Config.Entrypoint[0] != "/usr/bin/a" || config.Config.Cmd[0] != "x" || config.Config.User != "1:1" ||
		config.Config.Env[0] != "A=1" {
		t.Errorf("config %+v", config.Config)
	}
	if config.RootFS.DiffIDs[0] != "sha256:"+sum([]byte(layer)) {
		t.Errorf("diff id %s", config.RootFS.DiffIDs[0])
	}
}

func TestMissingProgramLeavesNoArchive(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "images.tar")
	if err := Write(path, []Image{{Names: []string{"a:1"}, Binary: "/nowhere", Paths: []string{"a"}}}); err == nil {
		t.Fatal("an image without its program was written")
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("the archive is there: %v", err)
	}
}
