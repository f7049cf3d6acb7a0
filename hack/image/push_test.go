package main

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// TestPush pushes an image for two platforms to a registry, and reads it back.
func TestPush(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(registry.New())
	defer server.Close()
	index := v1.ImageIndex(empty.Index)
	for _, architecture := range []string{"amd64", "arm64"} {
		contents, err := files(programs[1], "v1.2.3", ownBinary(t))
		if err != nil {
			t.Fatal(err)
		}
		image, err := newImage(programs[1], "v1.2.3", architecture, contents)
		if err != nil {
			t.Fatal(err)
		}
		index = mutate.AppendManifests(index,
			mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: architecture}}})
	}
	dir := t.TempDir()
	path, err := layout.Write(dir, empty.Index)
	if err == nil {
		err = path.AppendIndex(index)
	}
	if err != nil {
		t.Fatal(err)
	}
	reference := strings.TrimPrefix(server.URL, "http://") + "/team/provider-initor:1.2.3"
	digest, err := push(t.Context(), dir, reference)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := name.ParseReference(reference)
	if err != nil {
		t.Fatal(err)
	}
	pulled, err := remote.Index(parsed)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := pulled.Digest(); err != nil || got != digest {
		t.Errorf("the registry has %s, %v, want %s", got, err, digest)
	}
	if err := validate.Index(pulled); err != nil {
		t.Error(err)
	}
	if _, err := push(t.Context(), dir, "127.0.0.1:1/team/a:1"); err == nil {
		t.Error("a push to a registry that does not answer succeeds")
	}
}
