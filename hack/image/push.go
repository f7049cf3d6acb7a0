package main

import (
	"context"
	"fmt"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// push writes the index in a layout to the registry that the reference names, with the credentials of `docker login`, and returns its
// digest.
func push(ctx context.Context, layoutDir, reference string) (v1.Hash, error) {
	target, err := name.ParseReference(reference)
	if err != nil {
		return v1.Hash{}, err
	}
	outer, err := layout.ImageIndexFromPath(layoutDir)
	if err != nil {
		return v1.Hash{}, err
	}
	manifest, err := outer.IndexManifest()
	if err != nil {
		return v1.Hash{}, err
	}
	if len(manifest.Manifests) != 1 {
		return v1.Hash{}, fmt.Errorf("the layout has %d indexes, want 1", len(manifest.Manifests))
	}
	digest := manifest.Manifests[0].Digest
	index, err := outer.ImageIndex(digest)
	if err != nil {
		return v1.Hash{}, err
	}
	return digest, remote.WriteIndex(target, index, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain))
}
