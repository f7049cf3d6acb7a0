package main

import (
	"bytes"
	"crypto/x509"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

func TestImageIsValidAndReproducible(t *testing.T) {
	t.Parallel()
	var archives [2][]byte
	for i := range archives {
		image, err := newImage(programs[1], "v1.2.3", "arm64", []byte("binary"))
		if err != nil {
			t.Fatal(err)
		}
		config, err := image.ConfigFile()
		if err != nil || config.Config.User != user || config.Config.Entrypoint[0] != "/usr/bin/init" || config.Architecture != "arm64" {
			t.Errorf("config %+v, %v", config, err)
		}
		dir := t.TempDir()
		path, err := layout.Write(filepath.Join(dir, "layout"), empty.Index)
		if err != nil {
			t.Fatal(err)
		}
		if err := path.AppendImage(image); err != nil {
			t.Fatal(err)
		}
		index, err := path.ImageIndex()
		if err != nil {
			t.Fatal(err)
		}
		if err := validate.Index(index); err != nil {
			t.Errorf("image is not valid: %v", err)
		}
		archive := filepath.Join(dir, "image.tar")
		if err := archiveDir(filepath.Join(dir, "layout"), archive); err != nil {
			t.Fatal(err)
		}
		if archives[i], err = os.ReadFile(archive); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(archives[0], archives[1]) {
		t.Error("two builds of the same differ")
	}
}

func TestRootCertificatesAreReadable(t *testing.T) {
	t.Parallel()
	if !x509.NewCertPool().AppendCertsFromPEM(rootCertificates()) {
		t.Error("no certificate can be read")
	}
}
