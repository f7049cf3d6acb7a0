// Package imagetar writes container images into one archive that `docker load` and `ctr images import` read, without a container engine:
// images of single programs, and those of OCI archives. They are for machines of this host only: one architecture, nothing compressed.
package imagetar

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"time"
)

// Image is an image with one static program, and what else it needs, or one of an OCI archive.
type Image struct {
	// Names are its references with tags, for example registry.example.com/project/name:v1: all that manifests call it.
	Names []string
	// Binary is the program, a file of this host. Paths are where it is in the image, without the leading slash: the first one is the
	// entry point, the others are links to it.
	Binary string
	Paths  []string
	// Files are further files, by their paths in the image without the leading slash. Where they are on this host is their value; they
	// keep their permissions.
	Files map[string]string
	// Args follow the entry point, Env is the environment ("NAME=value"), User is "uid:gid" or empty for root.
	Args, Env []string
	User      string
	// Archive is an OCI archive with the image, as hack/image and `docker save` write it. Its files and its configuration stay as they are,
	// with Env added; Binary, Paths, Files, Args and User are not used.
	Archive string
}

// Source is the file of this host that the image is made of.
func (i Image) Source() string {
	if i.Archive != "" {
		return i.Archive
	}
	return i.Binary
}

// manifest is the entry of an image in the archive's manifest.json, as `docker save` writes it.
type manifest struct {
	Config   string
	RepoTags []string
	Layers   []string
}

// Write writes the images into the file path, which appears when it is complete.
func Write(path string, images []Image) error {
	temporary := path + ".new"
	out, err := os.OpenFile(temporary, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("write the archive of images: %w", err)
	}
	defer out.Close()
	archive := tar.NewWriter(out)
	manifests := make([]manifest, 0, len(images))
	for _, image := range images {
		var entry manifest
		if entry, err = image.write(archive); err != nil {
			return fmt.Errorf("write the image of %s: %w", image.Source(), err)
		}
		manifests = append(manifests, entry)
	}
	list, err := json.Marshal(manifests)
	if err == nil {
		err = writeFile(archive, "manifest.json", 0o644, list)
	}
	if err == nil {
		err = archive.Close()
	}
	if err == nil {
		err = os.Rename(temporary, path)
	}
	if err != nil {
		return fmt.Errorf("write the archive of images: %w", err)
	}
	return nil
}

// write adds the layer and the configuration of the image.
func (i Image) write(archive *tar.Writer) (manifest, error) {
	if i.Archive != "" {
		return i.copyArchive(archive)
	}
	layer, err := i.layer()
	if err != nil {
		return manifest{}, err
	}
	digest := sum(layer)
	config, err := json.Marshal(map[string]any{
		"os": "linux", "architecture": runtime.GOARCH,
		"config": map[string]any{"Entrypoint": []string{"/" + i.Paths[0]}, "Cmd": i.Args, "Env": i.Env, "User": i.User},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{"sha256:" + digest}},
	})
	if err != nil {
		return manifest{}, err
	}
	entry := manifest{Config: sum(config) + ".json", RepoTags: i.Names, Layers: []string{digest + ".tar"}}
	if err := writeFile(archive, entry.Layers[0], 0o644, layer); err != nil {
		return manifest{}, err
	}
	return entry, writeFile(archive, entry.Config, 0o644, config)
}

// layer is a file system with the program under all its names.
func (i Image) layer() ([]byte, error) {
	binary, err := os.ReadFile(i.Binary)
	if err != nil {
		return nil, err
	}
	var buffer bytes.Buffer
	w := tar.NewWriter(&buffer)
	if err := writeFile(w, i.Paths[0], 0o755, binary); err != nil {
		return nil, err
	}
	for _, link := range i.Paths[1:] {
		header := &tar.Header{Typeflag: tar.TypeSymlink, Name: link, Linkname: "/" + i.Paths[0], Mode: 0o777, ModTime: time.Unix(0, 0)}
		if err := w.WriteHeader(header); err != nil {
			return nil, err
		}
	}
	for _, path := range slices.Sorted(maps.Keys(i.Files)) {
		if err := copyFile(w, path, i.Files[path]); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return buffer.Bytes(), nil
}

// copyFile writes a file of this host. A link is followed.
func copyFile(w *tar.Writer, name, from string) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return writeFile(w, name, int64(info.Mode().Perm()), content)
}

func writeFile(w *tar.Writer, name string, mode int64, content []byte) error {
	header := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: int64(len(content)), ModTime: time.Unix(0, 0)}
	if err := w.WriteHeader(header); err != nil {
		return err
	}
	_, err := w.Write(content)
	return err
}

func sum(content []byte) string {
	digest := sha256.Sum256(content)
	return hex.EncodeToString(digest[:])
}
