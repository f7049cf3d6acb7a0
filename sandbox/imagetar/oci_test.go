package imagetar

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// ociArchive writes an OCI archive as hack/image does: an index of images for platforms, below another one. change may change its files.
func ociArchive(t *testing.T, architecture string, change func(files map[string][]byte, layer string)) string {
	t.Helper()
	all := map[string][]byte{}
	add := func(mediaType string, content []byte) map[string]any {
		all["blobs/sha256/"+sum(content)] = content
		return map[string]any{"mediaType": mediaType, "digest": "sha256:" + sum(content), "size": len(content)}
	}
	marshal := func(value any) []byte {
		text, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	var layer, packed bytes.Buffer
	files := tar.NewWriter(&layer)
	zip := gzip.NewWriter(&packed)
	if err := errors.Join(writeFile(files, "program", 0o755, []byte("binary")), files.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := zip.Write(layer.Bytes()); err != nil {
		t.Fatal(err)
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	config := add("application/vnd.oci.image.config.v1+json", marshal(map[string]any{
		"architecture": architecture, "config": map[string]any{"Entrypoint": []string{"/program"}, "User": "1:1", "Env": []string{"A=1"}},
		"rootfs": map[string]any{"diff_ids": []string{"sha256:" + sum(layer.Bytes())}},
	}))
	gzipped := add("application/vnd.oci.image.layer.v1.tar+gzip", packed.Bytes())
	image := add(ociManifest, marshal(map[string]any{"config": config, "layers": []any{gzipped}}))
	image["platform"] = map[string]any{"os": "linux", "architecture": architecture}
	other := map[string]any{"mediaType": ociManifest, "digest": "sha256:none",
		"platform": map[string]any{"os": "linux", "architecture": "none"}}
	platforms := add(ociIndex, marshal(map[string]any{"manifests": []any{other, image}}))
	all["index.json"] = marshal(map[string]any{"manifests": []any{platforms}})
	if change != nil {
		change(all, blobName(gzipped["digest"].(string))) //nolint:forcetypeassert // see add
	}

	path := filepath.Join(t.TempDir(), "oci.tar")
	out, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	archive := tar.NewWriter(out)
	for name, content := range all {
		if err := writeFile(archive, name, 0o644, content); err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestPublishedImage: an image of an OCI archive keeps its files and its configuration, but for what is added to the environment.
func TestPublishedImage(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "images.tar")
	published := ociArchive(t, runtime.GOARCH, nil)
	images := []Image{{Names: []string{"a:1"}, Archive: published, Env: []string{"B=2"}}, {Names: []string{"b:1"}, Archive: published}}
	all, manifests := written(t, path, images)
	for i, env := range [][]string{{"A=1", "B=2"}, {"A=1"}} {
		var config struct {
			Config struct {
				Entrypoint, Env []string
				User            string
			} `json:"config"`
		}
		if err := json.Unmarshal([]byte(all[manifests[i].Config]), &config); err != nil {
			t.Fatal(err)
		}
		if c := config.Config; !slices.Equal(c.Env, env) || !slices.Equal(c.Entrypoint, []string{"/program"}) || c.User != "1:1" {
			t.Errorf("config %+v, want the environment %v", c, env)
		}
		layer := files(t, strings.NewReader(all[manifests[i].Layers[0]]))
		if diff := cmp.Diff(map[string]string{"program": "binary"}, layer); diff != "" {
			t.Errorf("files differ (-want +got):\n%s", diff)
		}
	}
	registry, err := OpenRegistry(path)
	if err != nil {
		t.Fatalf("the archive cannot be served: %v", err)
	}
	if err := registry.Close(); err != nil {
		t.Error(err)
	}
}

// TestPublishedImageIsWhole: an archive without an image for this host, or with something else than its digests say, is an error that says
// so.
func TestPublishedImageIsWhole(t *testing.T) {
	t.Parallel()
	for want, path := range map[string]string{
		"no image for linux/" + runtime.GOARCH: ociArchive(t, "other", nil),
		"another digest": ociArchive(t, runtime.GOARCH, func(files map[string][]byte, layer string) {
			files[layer] = []byte("damaged")
		}),
		"is missing": ociArchive(t, runtime.GOARCH, func(files map[string][]byte, layer string) { delete(files, layer) }),
	} {
		err := Write(filepath.Join(t.TempDir(), "images.tar"), []Image{{Names: []string{"a:1"}, Archive: path}})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want an error with %q", err, want)
		}
	}
}
