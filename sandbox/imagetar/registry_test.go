package imagetar

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
)

// pull gets a path of a registry that stands for another one.
func pull(t *testing.T, url, path, registry string) (int, http.Header, []byte) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+path+"?ns="+registry, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, response.Header, body
}

func TestRegistry(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	binary, archive := filepath.Join(dir, "program"), filepath.Join(dir, "images.tar")
	if err := os.WriteFile(binary, []byte("binary"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := Write(archive, []Image{{Names: []string{"docker.io/library/a:1"}, Binary: binary, Paths: []string{"a"}}}); err != nil {
		t.Fatal(err)
	}
	registry, err := OpenRegistry(archive)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(registry)
	t.Cleanup(func() {
		server.Close()
		if err := registry.Close(); err != nil {
			t.Error(err)
		}
	})

	status, header, body := pull(t, server.URL, "/v2/library/a/manifests/1", "docker.io")
	digest := header.Get("Docker-Content-Digest")
	if status != http.StatusOK || digest != "sha256:"+sum(body) || header.Get("Content-Type") != manifestType {
		t.Fatalf("the manifest: %d, %v", status, header)
	}
	var document struct {
		Config descriptor
		Layers []descriptor
	}
	if err := json.Unmarshal(body, &document); err != nil {
		t.Fatal(err)
	}
	for _, blob := range append(document.Layers, document.Config) {
		status, _, content := pull(t, server.URL, "/v2/library/a/blobs/"+blob.Digest, "docker.io")
		if status != http.StatusOK || "sha256:"+sum(content) != blob.Digest || int64(len(content)) != blob.Size {
			t.Errorf("%s: %d, %d bytes that are %s", blob.Digest, status, len(content), sum(content))
		}
	}
	if status, _, again := pull(t, server.URL, "/v2/library/a/manifests/"+digest, "docker.io"); status != http.StatusOK ||
		string(again) != string(body) {
		t.Errorf("the manifest by its digest: %d, %s", status, again)
	}
	for what, path := range map[string][2]string{
		"another tag":        {"/v2/library/a/manifests/2", "docker.io"},
		"another registry":   {"/v2/library/a/manifests/1", "example.com"},
		"another repository": {"/v2/library/b/manifests/1", "docker.io"},
		"another blob":       {"/v2/library/a/blobs/sha256:0", "docker.io"},
	} {
		if status, _, _ := pull(t, server.URL, path[0], path[1]); status != http.StatusNotFound {
			t.Errorf("%s: %d", what, status)
		}
	}
	response, err := http.Post(server.URL+"/v2/library/a/blobs/uploads/", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	if response.Body.Close(); response.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("a push: %s", response.Status)
	}
}

func TestArchiveThatIsNone(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "images.tar")
	if err := os.WriteFile(file, []byte("no archive of images at all"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{file, filepath.Join(t.TempDir(), "missing.tar")} {
		if _, err := OpenRegistry(path); err == nil {
			t.Errorf("%s was read", path)
		}
	}
}
