package imagetar

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
)

// Media types of what a registry serves. Layers are not compressed, as they stand in the archives.
const (
	manifestType = "application/vnd.docker.distribution.manifest.v2+json"
	configType   = "application/vnd.docker.container.image.v1+json"
	layerType    = "application/vnd.docker.image.rootfs.diff.tar"
)

// Registry serves the images of archives to container runtimes that pull: the two reads of a registry's API, and no writes. A runtime
// says with the parameter ns, as containerd does for a mirror, which registry it takes this one for; so images have their full names.
//
// Protocol: https://distribution.github.io/distribution/spec/api/
type Registry struct {
	archives  []*os.File
	manifests map[string][]byte            // by "registry/repository:tag" and "registry/repository@digest"
	blobs     map[string]*io.SectionReader // by digest
}

type descriptor struct {
	MediaType string `json:"mediaType"`
	Size      int64  `json:"size"`
	Digest    string `json:"digest"`
}

// OpenRegistry reads which images archives hold, as Write and `docker save` write them. It keeps the files open until Close.
func OpenRegistry(paths ...string) (*Registry, error) {
	r := &Registry{manifests: map[string][]byte{}, blobs: map[string]*io.SectionReader{}}
	for _, path := range paths {
		file, err := os.Open(path)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("open an archive of images: %w", err), r.Close())
		}
		r.archives = append(r.archives, file)
		if err := r.add(file); err != nil {
			return nil, errors.Join(fmt.Errorf("read the archive of images %s: %w", path, err), r.Close())
		}
	}
	return r, nil
}

// Close closes the archives.
func (r *Registry) Close() error {
	var errs []error
	for _, file := range r.archives {
		errs = append(errs, file.Close())
	}
	return errors.Join(errs...)
}

// add takes in the images of an archive.
func (r *Registry) add(archive *os.File) error {
	files, err := index(archive)
	if err != nil {
		return err
	}
	var images []manifest
	if err := decode(files, "manifest.json", &images); err != nil {
		return err
	}
	for _, image := range images {
		if err := r.addImage(files, image); err != nil {
			return err
		}
	}
	return nil
}

func (r *Registry) addImage(files map[string]*io.SectionReader, image manifest) error {
	var config struct {
		RootFS struct {
			DiffIDs []string `json:"diff_ids"`
		} `json:"rootfs"`
	}
	if err := decode(files, image.Config, &config); err != nil {
		return err
	}
	if len(config.RootFS.DiffIDs) != len(image.Layers) {
		return fmt.Errorf("image %v has %d layers, and its configuration %d", image.RepoTags, len(image.Layers), len(config.RootFS.DiffIDs))
	}
	content, err := io.ReadAll(io.NewSectionReader(files[image.Config], 0, files[image.Config].Size()))
	if err != nil {
		return err
	}
	document := struct {
		SchemaVersion int          `json:"schemaVersion"`
		MediaType     string       `json:"mediaType"`
		Config        descriptor   `json:"config"`
		Layers        []descriptor `json:"layers"`
	}{SchemaVersion: 2, MediaType: manifestType}
	document.Config = r.addBlob(configType, "sha256:"+sum(content), files[image.Config])
	for i, name := range image.Layers {
		if files[name] == nil {
			return fmt.Errorf("layer %s of %v is missing", name, image.RepoTags)
		}
		// A layer that is not compressed is what the configuration calls it.
		document.Layers = append(document.Layers, r.addBlob(layerType, config.RootFS.DiffIDs[i], files[name]))
	}
	body, err := json.Marshal(document)
	if err != nil {
		return err
	}
	for _, name := range image.RepoTags {
		r.manifests[name] = body
		repository := name[:strings.LastIndex(name, ":")]
		r.manifests[repository+"@sha256:"+sum(body)] = body
	}
	return nil
}

func (r *Registry) addBlob(mediaType, digest string, content *io.SectionReader) descriptor {
	r.blobs[digest] = content
	return descriptor{MediaType: mediaType, Size: content.Size(), Digest: digest}
}

// ServeHTTP answers GET and HEAD of /v2/, /v2/<repository>/manifests/<tag or digest> and /v2/<repository>/blobs/<digest>.
func (r *Registry) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	if request.Method != http.MethodGet && request.Method != http.MethodHead {
		http.Error(w, "images are only read here", http.StatusMethodNotAllowed)
		return
	}
	path, ok := strings.CutPrefix(request.URL.Path, "/v2/")
	if ok && path == "" {
		return // the version of the API is known
	}
	if repository, reference, ok := strings.Cut(path, "/manifests/"); ok {
		r.serveManifest(w, request, request.URL.Query().Get("ns")+"/"+repository, reference)
		return
	}
	if _, digest, ok := strings.Cut(path, "/blobs/"); ok && r.blobs[digest] != nil {
		section := r.blobs[digest]
		// Each reader has a position of its own.
		serveContent(w, request, "application/octet-stream", digest, io.NewSectionReader(section, 0, section.Size()))
		return
	}
	http.NotFound(w, request)
}

func (r *Registry) serveManifest(w http.ResponseWriter, request *http.Request, repository, reference string) {
	separator := ":"
	if strings.Contains(reference, ":") {
		separator = "@"
	}
	body, known := r.manifests[repository+separator+reference]
	if !known {
		http.NotFound(w, request)
		return
	}
	serveContent(w, request, manifestType, "sha256:"+sum(body), bytes.NewReader(body))
}

func serveContent(w http.ResponseWriter, request *http.Request, mediaType, digest string, content io.ReadSeeker) {
	w.Header().Set("Content-Type", mediaType)
	w.Header().Set("Docker-Content-Digest", digest)
	http.ServeContent(w, request, "", time.Time{}, content)
}

// index finds the files of an archive.
func index(archive *os.File) (map[string]*io.SectionReader, error) {
	files := map[string]*io.SectionReader{}
	for entries := tar.NewReader(archive); ; {
		header, err := entries.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, err
		}
		// The reader has read the header and nothing further.
		at, err := archive.Seek(0, io.SeekCurrent)
		if err != nil {
			return nil, err
		}
		files[header.Name] = io.NewSectionReader(archive, at, header.Size)
	}
}

func decode(files map[string]*io.SectionReader, name string, into any) error {
	if files[name] == nil {
		return fmt.Errorf("%s is missing", name)
	}
	if err := json.NewDecoder(files[name]).Decode(into); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}
