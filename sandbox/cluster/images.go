//go:build linux

package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/imagetar"
	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/realnode"
)

// nobody is the user of the published images.
const nobody = "65532:65532"

// images are made of the programs in binDir, and those of the project are taken from the OCI archives in the directory published, unless it
// is empty. The environment of the manager's says where the cloud's OpenAPI is, which manifests leave to the names of the public endpoints.
func images(binDir, published string) []imagetar.Image {
	binary := func(name string) string { return filepath.Join(binDir, name) }
	endpoint := "http://" + OpenAPIAddress
	environment := []string{
		"SLB_ENDPOINT=" + endpoint, "NLB_ENDPOINT=" + endpoint, "VPC_ENDPOINT=" + endpoint, "ECS_ENDPOINT=" + endpoint,
		"ALICLOUD_CLIENT_SCHEME=HTTP",
	}
	images := []imagetar.Image{
		{Names: []string{realnode.PauseImage}, Binary: binary("testserver"), Paths: []string{"pause"}, Args: []string{"pause"}, User: nobody},
		{Names: []string{TestServerImage, "docker.io/library/nginx:latest"}, Binary: binary("testserver"), Paths: []string{"testserver"}},
		{
			Names: []string{ManagerImage}, Binary: binary("cloud-controller-manager"), Env: environment, User: nobody,
			Paths: []string{"cloud-controller-manager", "usr/local/bin/cloud-controller-manager"},
		},
		{Names: []string{InitorImage}, Binary: binary("provider-initor"), Paths: []string{"usr/bin/init"}, User: nobody},
	}
	for i := range images {
		if name := filepath.Base(images[i].Binary); published != "" && slices.Contains(publishedPrograms, name) {
			images[i].Archive = filepath.Join(published, name+".tar")
		}
	}
	return images
}

// publishedPrograms are those whose images the project publishes and machines run.
var publishedPrograms = []string{"cloud-controller-manager", "provider-initor"}

// writeImages writes the archive with all images.
func writeImages(archive, binDir, published string) error {
	all := images(binDir, published)
	for _, image := range all {
		if _, err := os.Stat(image.Source()); errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("%s is missing, and real machines need its image: run make build and make machine, or make image for an archive",
				image.Source())
		}
	}
	return imagetar.Write(archive, all)
}
