package main

import (
	"archive/tar"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
)

// TestTreeHasTheFilesOfTheImage holds what the Dockerfile copies to what make image packs: names, kinds, modes, contents.
func TestTreeHasTheFilesOfTheImage(t *testing.T) {
	t.Parallel()
	for _, p := range programs {
		contents, image := packed(t, p)
		dir := filepath.Join(t.TempDir(), p.name)
		if err := writeTree(dir, contents); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(filesOfImage(t, image), filesOfTree(t, dir)); diff != "" {
			t.Errorf("%s: files of the image (-) and of the tree (+):\n%s", p.name, diff)
		}
	}
}

// TestEveryDirectoryIsNamed: runtimes may give one that is not to root alone, and the program's user is not root.
func TestEveryDirectoryIsNamed(t *testing.T) {
	t.Parallel()
	for _, p := range programs {
		_, image := packed(t, p)
		layers, err := image.Layers()
		if err != nil {
			t.Fatal(err)
		}
		for _, layer := range layers {
			content, err := layer.Uncompressed()
			if err != nil {
				t.Fatal(err)
			}
			found := filesOfTar(t, content)
			for name := range found {
				if dir := filepath.Dir(name); dir != "." && found[dir] != "drwxr-xr-x" {
					t.Errorf("%s: the layer with %s has %q for the directory %s", p.name, name, found[dir], dir)
				}
			}
		}
	}
}

// filesOfImage describes the files of an image's layers together, by path.
func filesOfImage(t *testing.T, image v1.Image) map[string]string {
	t.Helper()
	flat := mutate.Extract(image)
	defer flat.Close()
	return filesOfTar(t, flat)
}

func filesOfTar(t *testing.T, from io.Reader) map[string]string {
	t.Helper()
	found := map[string]string{}
	for r := tar.NewReader(from); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		found[strings.TrimSuffix(header.Name, "/")] = describe(header.FileInfo().Mode(), header.Linkname, data)
	}
}

// filesOfTree describes the files below dir, by path.
func filesOfTree(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == "." {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		var link string
		var data []byte
		switch info.Mode().Type() {
		case fs.ModeSymlink:
			link, err = os.Readlink(filepath.Join(dir, path))
		case 0:
			data, err = os.ReadFile(filepath.Join(dir, path))
		}
		found[path] = describe(info.Mode(), link, data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func describe(mode fs.FileMode, link string, data []byte) string {
	switch mode.Type() {
	case fs.ModeDir:
		return mode.String()
	case fs.ModeSymlink: // its own mode means nothing
		return "to " + link
	default:
		return fmt.Sprintf("%s %d bytes %x", mode, len(data), sha256.Sum256(data))
	}
}
