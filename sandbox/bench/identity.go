package bench

import (
	"context"
	"fmt"

	"github.com/alicloud-ccm/cloud-provider-alicloud/deploy"
	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/identity"
)

// identify makes the ServiceAccount and the roles of a published manifest, and returns the path of a kubeconfig that has nothing but
// its token.
func (e *env) identify(ctx context.Context, manifest string) (string, error) {
	content, err := deploy.Files.ReadFile(manifest)
	if err != nil {
		return "", fmt.Errorf("read the published manifest: %w", err)
	}
	granted, err := identity.Grant(ctx, identity.Options{Client: e.client, Config: e.config, Manifest: content, Dir: e.dir})
	return granted.Kubeconfig, err
}
