package main

import (
	"context"
	"os"
	"path/filepath"
)

// writeTree writes the files of the images into out/NAME, for those who make images of them by other means: hack/image/Dockerfile.
func writeTree(ctx context.Context, opts options, out string) error {
	for _, p := range programs {
		binary, err := compile(ctx, opts, p, opts.architectures[0])
		if err != nil {
			return err
		}
		contents, err := files(p, opts.version, binary)
		if err != nil {
			return err
		}
		for _, f := range contents {
			path := filepath.Join(out, p.name, f.path)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				return err
			}
			if err := os.WriteFile(path, f.data, f.mode); err != nil {
				return err
			}
		}
	}
	return nil
}
