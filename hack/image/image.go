package main

import (
	"archive/tar"
	"bytes"
	"context"
	"debug/buildinfo"
	"fmt"
	"io"
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

// user is that of the published empty bases: no name, no rights.
const user = "65532:65532"

// writeLayout writes an index with one image for each architecture.
func writeLayout(ctx context.Context, opts options, p program, reference, dir string) error {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, architecture := range opts.architectures {
		binary, err := binaryOf(ctx, opts, p, architecture)
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

// binaryOf returns the static binary of p: the given one, or one that it compiles.
func binaryOf(ctx context.Context, opts options, p program, architecture string) ([]byte, error) {
	if opts.binaries == "" {
		return compile(ctx, opts, p, architecture)
	}
	binary, err := os.ReadFile(filepath.Join(opts.binaries, p.name))
	if err != nil {
		return nil, err
	}
	return binary, check(p, architecture, binary)
}

// check rejects a binary that would not run in the image, in which there is nothing else.
func check(p program, architecture string, binary []byte) error {
	info, err := buildinfo.Read(bytes.NewReader(binary))
	if err != nil {
		return fmt.Errorf("%s: %w", p.name, err)
	}
	want := map[string]string{"GOOS": "linux", "GOARCH": architecture, "CGO_ENABLED": "0"}
	for _, setting := range info.Settings {
		if value, ok := want[setting.Key]; ok && value != setting.Value {
			return fmt.Errorf("%s was built with %s=%s: %s is needed", p.name, setting.Key, setting.Value, value)
		}
	}
	return nil
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
	// Neither the commit nor the directory of the sources gets into the bytes, nor what the builder has set for other programs.
	build := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-trimpath", "-tags", "grpcnotrace", "-ldflags", ldflags,
		"-o", binary, "./cmd/"+p.name)
	build.Dir = opts.root
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+architecture,
		"GOAMD64=v1", "GOARM64=v8.0", "GOFIPS140=off", "GOWORK=off", "GOFLAGS=-mod=readonly")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return nil, fmt.Errorf("go build for %s: %w", architecture, err)
	}
	return os.ReadFile(binary)
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
	config.Config.Env = p.env
	if p.port != "" {
		config.Config.ExposedPorts = map[string]struct{}{p.port + "/tcp": {}}
	}
	config.Config.Labels = labels(version)
	return mutate.ConfigFile(image, config)
}

// labels say to registries and scanners where an image comes from.
func labels(version string) map[string]string {
	return map[string]string{
		"org.opencontainers.image.source":   "https://github.com/alicloud-ccm/cloud-provider-alicloud",
		"org.opencontainers.image.version":  version,
		"org.opencontainers.image.licenses": "Apache-2.0",
	}
}

// newLayer returns a layer with one file and the directories above it. Some runtimes give directories that a layer does not name to
// root alone (containerd before 1.2.5, containers/storage before 1.42), where the image's user could not even reach the program.
func newLayer(f file) (v1.Layer, error) {
	var buffer bytes.Buffer
	w := tar.NewWriter(&buffer)
	for _, dir := range f.parents() {
		header := &tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: dirMode, ModTime: time.Unix(0, 0)}
		if err := w.WriteHeader(header); err != nil {
			return nil, err
		}
	}
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
