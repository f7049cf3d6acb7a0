package imagetar

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
)

// Media types of an OCI archive that lead to images, see https://github.com/opencontainers/image-spec/blob/main/media-types.md.
const (
	ociIndex    = "application/vnd.oci.image.index.v1+json"
	ociManifest = "application/vnd.oci.image.manifest.v1+json"
)

// errNoPlatform says that an archive has no image for the machines of this host.
var errNoPlatform = errors.New("no image for linux/" + runtime.GOARCH)

// published is an image in an OCI archive.
type published struct {
	Config descriptor   `json:"config"`
	Layers []descriptor `json:"layers"`
}

// copyArchive adds the image of an OCI archive: its layers, which are unpacked, and its configuration with the environment of i added.
func (i Image) copyArchive(archive *tar.Writer) (manifest, error) {
	file, err := os.Open(i.Archive)
	if err != nil {
		return manifest{}, err
	}
	defer file.Close() //nolint:errcheck // it is only read
	files, err := index(file)
	if err != nil {
		return manifest{}, err
	}
	var image published
	if err = find(files, "index.json", &image); err != nil {
		return manifest{}, err
	}
	config, diffIDs, err := i.configOf(files, image)
	if err != nil {
		return manifest{}, err
	}
	// Images may have a layer in common: the name of the configuration keeps them apart in the archive.
	name := sum(config)
	entry := manifest{Config: name + ".json", RepoTags: i.Names}
	for at, layer := range image.Layers {
		content, err := unpack(files, layer, diffIDs[at])
		if err != nil {
			return manifest{}, err
		}
		entry.Layers = append(entry.Layers, fmt.Sprintf("%s/%d.tar", name, at))
		if err := writeFile(archive, entry.Layers[at], 0o644, content); err != nil {
			return manifest{}, err
		}
	}
	return entry, writeFile(archive, entry.Config, 0o644, config)
}

// find reads the manifest of the image for this host below an index.
func find(files map[string]*io.SectionReader, name string, into *published) error {
	var list struct {
		Manifests []struct {
			descriptor
			Platform struct {
				OS           string `json:"os"`
				Architecture string `json:"architecture"`
			} `json:"platform"`
		} `json:"manifests"`
	}
	if err := decode(files, name, &list); err != nil {
		return err
	}
	for _, m := range list.Manifests {
		switch {
		case m.MediaType == ociIndex:
			if err := find(files, blobName(m.Digest), into); !errors.Is(err, errNoPlatform) {
				return err
			}
		case m.MediaType == ociManifest && m.Platform.OS == "linux" && m.Platform.Architecture == runtime.GOARCH:
			content, err := blob(files, m.Digest)
			if err != nil {
				return err
			}
			return json.Unmarshal(content, into)
		}
	}
	return errNoPlatform
}

// configOf is the configuration of a published image with more environment, and what it says its layers are when unpacked.
func (i Image) configOf(files map[string]*io.SectionReader, image published) (config []byte, diffIDs []string, err error) {
	content, err := blob(files, image.Config.Digest)
	if err != nil {
		return nil, nil, err
	}
	var all, inner map[string]json.RawMessage
	var env []string
	var root struct {
		DiffIDs []string `json:"diff_ids"`
	}
	if err = errors.Join(json.Unmarshal(content, &all), unmarshal(all["config"], &inner), unmarshal(all["rootfs"], &root)); err != nil {
		return nil, nil, err
	}
	if err = unmarshal(inner["Env"], &env); err != nil {
		return nil, nil, err
	}
	if len(root.DiffIDs) != len(image.Layers) {
		return nil, nil, fmt.Errorf("the image has %d layers, and its configuration %d", len(image.Layers), len(root.DiffIDs))
	}
	if inner == nil {
		inner = map[string]json.RawMessage{}
	}
	if inner["Env"], err = json.Marshal(append(slices.Clone(env), i.Env...)); err != nil {
		return nil, nil, err
	}
	if all["config"], err = json.Marshal(inner); err != nil {
		return nil, nil, err
	}
	config, err = json.Marshal(all)
	return config, root.DiffIDs, err
}

// unmarshal leaves what is missing as it is.
func unmarshal(raw json.RawMessage, into any) error {
	if raw == nil {
		return nil
	}
	return json.Unmarshal(raw, into)
}

// unpack returns a layer as a tar file.
func unpack(files map[string]*io.SectionReader, layer descriptor, diffID string) ([]byte, error) {
	content, err := blob(files, layer.Digest)
	if err != nil {
		return nil, err
	}
	if strings.HasSuffix(layer.MediaType, "+gzip") {
		reader, err := gzip.NewReader(bytes.NewReader(content))
		if err != nil {
			return nil, fmt.Errorf("layer %s: %w", layer.Digest, err)
		}
		if content, err = io.ReadAll(reader); err != nil {
			return nil, fmt.Errorf("layer %s: %w", layer.Digest, err)
		}
	}
	if got := "sha256:" + sum(content); got != diffID {
		return nil, fmt.Errorf("layer %s is %s when unpacked, and the configuration says %s", layer.Digest, got, diffID)
	}
	return content, nil
}

// blob returns a file of an OCI archive by its digest, which it must have.
func blob(files map[string]*io.SectionReader, digest string) ([]byte, error) {
	section := files[blobName(digest)]
	if section == nil {
		return nil, fmt.Errorf("blob %s is missing", digest)
	}
	content, err := io.ReadAll(io.NewSectionReader(section, 0, section.Size()))
	if err == nil && "sha256:"+sum(content) != digest {
		err = fmt.Errorf("blob %s has another digest", digest)
	}
	return content, err
}

func blobName(digest string) string { return "blobs/" + strings.Replace(digest, ":", "/", 1) }
