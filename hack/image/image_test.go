package main

import (
	"archive/tar"
	"bytes"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdxlib"
)

func TestImageIsValidAndReproducible(t *testing.T) {
	t.Parallel()
	var archives [2][]byte
	for i := range archives {
		binary := ownBinary(t)
		contents, err := files(programs[1], "v1.2.3", binary)
		if err != nil {
			t.Fatal(err)
		}
		image, err := newImage(programs[1], "v1.2.3", "arm64", contents)
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

// packed returns the files of a program's image, and the image of them.
func packed(t *testing.T, p program) ([]file, v1.Image) {
	t.Helper()
	contents, err := files(p, "v1.2.3", ownBinary(t))
	if err != nil {
		t.Fatal(err)
	}
	image, err := newImage(p, "v1.2.3", "amd64", contents)
	if err != nil {
		t.Fatal(err)
	}
	return contents, image
}

// Manifests of users call the manager by one path, the Kubernetes documentation's outline by the other.
func TestManagerHasBothPaths(t *testing.T) {
	t.Parallel()
	_, image := packed(t, programs[0])
	found := map[string]string{}
	layers, err := image.Layers()
	if err != nil {
		t.Fatal(err)
	}
	for _, layer := range layers {
		content, err := layer.Uncompressed()
		if err != nil {
			t.Fatal(err)
		}
		for r := tar.NewReader(content); ; {
			header, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			found[header.Name] = header.Linkname
		}
	}
	if to, ok := found["cloud-controller-manager"]; !ok || to != "" {
		t.Errorf("the image has %v, want the program at its root", found)
	}
	if to := found["usr/local/bin/cloud-controller-manager"]; to != "/cloud-controller-manager" {
		t.Errorf("usr/local/bin/cloud-controller-manager leads to %q", to)
	}
}

// TestEmulatorIsReachable: in a container, a program that listens on loopback answers nobody, and its clients are never loopback ones.
func TestEmulatorIsReachable(t *testing.T) {
	t.Parallel()
	i := slices.IndexFunc(programs, func(p program) bool { return p.name == "alicloud-emulator" })
	_, image := packed(t, programs[i])
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if _, exposed := config.Config.ExposedPorts["18080/tcp"]; !exposed || !slices.Equal(config.Config.Env, programs[i].env) ||
		config.Config.Cmd != nil {
		t.Errorf("config %+v, want the port, the environment, and no arguments that others would replace", config.Config)
	}
}

func TestRootCertificatesAreReadable(t *testing.T) {
	t.Parallel()
	if !x509.NewCertPool().AppendCertsFromPEM(rootCertificates()) {
		t.Error("no certificate can be read")
	}
}

// ownBinary is a Go program: this test.
func ownBinary(t *testing.T) []byte {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	binary, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return binary
}

// TestBillOfMaterials reads the bill as SPDX tools do, and looks for what is known to be in it.
func TestBillOfMaterials(t *testing.T) {
	t.Parallel()
	bill, err := billOfMaterials(programs[0], "v1.2.3", ownBinary(t))
	if err != nil {
		t.Fatal(err)
	}
	document, err := spdxjson.Read(bytes.NewReader(bill))
	if err != nil {
		t.Fatal(err)
	}
	if err := spdxlib.ValidateDocument(document); err != nil {
		t.Error(err)
	}
	versions := map[string]string{}
	for _, p := range document.Packages {
		versions[p.PackageName] = p.PackageVersion
	}
	for _, want := range []string{"github.com/alicloud-ccm/cloud-provider-alicloud/hack/image", "stdlib",
		"github.com/google/go-containerregistry", "golang.org/x/crypto/x509roots/fallback"} {
		if versions[want] == "" {
			t.Errorf("the bill lacks %s: %v", want, versions)
		}
	}
	if _, err := billOfMaterials(programs[0], "v1.2.3", []byte("no program")); err == nil {
		t.Error("a bill for what is no program")
	}
}

// TestDockerfileGivesTheSame holds the Dockerfile to the labels, the user, the ports, the environment and the entry points of the images.
func TestDockerfileGivesTheSame(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	named := labels("$VERSION")
	for _, key := range slices.Sorted(maps.Keys(named)) {
		lines = append(lines, fmt.Sprintf("%s=%q", key, named[key]))
	}
	stages := []string{"\nFROM scratch AS common\nARG VERSION\nLABEL " + strings.Join(lines, " \\\n      ") + "\nUSER " + user + "\n"}
	for _, p := range programs {
		served := ""
		for _, variable := range p.env {
			served += "ENV " + variable + "\n"
		}
		if p.port != "" {
			served += "EXPOSE " + p.port + "/tcp\n"
		}
		stages = append(stages, "\nFROM common AS "+p.name+"\nCOPY --from=build /out/"+p.name+"/ /\n"+served+"ENTRYPOINT [\"/"+p.path+"\"]\n")
	}
	for _, want := range stages {
		if !strings.Contains(string(text), want) {
			t.Errorf("the Dockerfile lacks\n%s", want)
		}
	}
}
