package main

import (
	"context"
	"os"
	"path/filepath"
)

// writeTrees writes the files of the images into out/NAME, for those who make images of them by other means: hack/image/Dockerfile.
func writeTrees(ctx context.Context, opts options, out string) error {
	for _, p := range programs {
		binary, err := binaryOf(ctx, opts, p, opts.architectures[0])
		if err != nil {
			return err
		}
		contents, err := files(p, opts.version, binary)
		if err != nil {
			return err
		}
		if err := writeTree(filepath.Join(out, p.name), contents); err != nil {
			return err
		}
	}
	return nil
}

// writeTree writes files below dir, which must not hold them yet.
func writeTree(dir string, contents []file) error {
	if err := os.MkdirAll(dir, dirMode); err != nil {
		return err
	}
	for _, f := range contents {
		for _, parent := range f.parents() {
			if err := os.MkdirAll(filepath.Join(dir, parent), dirMode); err != nil {
				return err
			}
			if err := os.Chmod(filepath.Join(dir, parent), dirMode); err != nil { // whatever the umask
				return err
			}
		}
		path := filepath.Join(dir, f.path)
		if f.linkTo != "" {
			if err := os.Symlink(f.linkTo, path); err != nil {
				return err
			}
			continue
		}
		if err := os.WriteFile(path, f.data, f.mode); err != nil {
			return err
		}
		if err := os.Chmod(path, f.mode); err != nil {
			return err
		}
	}
	return nil
}
