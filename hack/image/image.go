package main

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// certFile is where Go programs look for root certificates first.
const certFile = "etc/ssl/certs/ca-certificates.crt"

// user is that of the published empty bases: no name, no rights.
const user = "65532:65532"

// writeLayout writes an index with one image for each architecture.
func writeLayout(ctx context.Context, opts options, p program, reference, dir string) error {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, architecture := range opts.architectures {
		binary, err := compile(ctx, opts, p, architecture)
		if err != nil {
			return err
		}
		contents, err := files(p, opts.version, binary)
		if err != nil {
			return err
		}
		image, err := newImage(p, opts.version, architecture, contents)
		if err != nil {
			return err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add:        image,
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: architecture}},
		})
	}
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	names := map[string]string{
		"org.opencontainers.image.ref.name": reference,
		"io.containerd.image.name":          reference,
	}
	return path.AppendIndex(index, layout.WithAnnotations(names))
}

// compile returns the static binary of p.
func compile(ctx context.Context, opts options, p program, architecture string) ([]byte, error) {
	dir, err := os.MkdirTemp("", "binary-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	binary := filepath.Join(dir, p.name)
	ldflags := "-s -w -X k8s.io/component-base/version.gitVersion=" + opts.version
	// Neither the commit nor the directory of the sources gets into the bytes.
	build := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-trimpath", "-ldflags", ldflags, "-o", binary, "./cmd/"+p.name)
	build.Dir = opts.root
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+architecture)
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return nil, fmt.Errorf("go build for %s: %w", architecture, err)
	}
	return os.ReadFile(binary)
}

// file is one of an image: a regular one, or a symbolic link.
type file struct {
	path   string
	mode   fs.FileMode
	data   []byte
	linkTo string // empty for a regular file
}

// files returns all that is in the image of p: root certificates, the program, and what it is made of.
func files(p program, version string, binary []byte) ([]file, error) {
	bill, err := billOfMaterials(p, version, binary)
	if err != nil {
		return nil, err
	}
	all := []file{
		{path: certFile, mode: 0o644, data: rootCertificates()}, {path: p.path, mode: 0o755, data: binary},
		{path: "usr/share/sbom/" + p.name + ".spdx.json", mode: 0o644, data: bill},
	}
	if p.link != "" {
		all = append(all, file{path: p.link, mode: 0o777, linkTo: "/" + p.path})
	}
	return all, nil
}

func newImage(p program, version, architecture string, contents []file) (v1.Image, error) {
	base := mutate.MediaType(mutate.ConfigMediaType(empty.Image, types.OCIConfigJSON), types.OCIManifestSchema1)
	layers := make([]mutate.Addendum, 0, len(contents))
	for _, f := range contents {
		layer, err := newLayer(f)
		if err != nil {
			return nil, err
		}
		layers = append(layers, mutate.Addendum{Layer: layer})
	}
	image, err := mutate.Append(base, layers...)
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", architecture
	config.Created = v1.Time{Time: time.Unix(0, 0).UTC()} // the clock must not get into the bytes
	config.Config.User = user
	config.Config.Entrypoint = []string{"/" + p.path}
	config.Config.Labels = map[string]string{
		"org.opencontainers.image.source":   "https://github.com/alicloud-ccm/cloud-provider-alicloud",
		"org.opencontainers.image.version":  version,
		"org.opencontainers.image.licenses": "Apache-2.0",
	}
	return mutate.ConfigFile(image, config)
}

// newLayer returns a layer with one file.
func newLayer(f file) (v1.Layer, error) {
	var buffer bytes.Buffer
	w := tar.NewWriter(&buffer)
	header := &tar.Header{Typeflag: tar.TypeReg, Name: f.path, Mode: int64(f.mode), Size: int64(len(f.data)), ModTime: time.Unix(0, 0)}
	if f.linkTo != "" {
		header.Typeflag, header.Linkname = tar.TypeSymlink, f.linkTo
	}
	if err := w.WriteHeader(header); err != nil {
		return nil, err
	}
	if _, err := w.Write(f.data); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(buffer.Bytes())), nil }
	return tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer))
}
