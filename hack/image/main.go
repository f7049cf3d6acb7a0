// Command image builds the container images of the manager, of the initializer and of the emulator, for each platform, as OCI archives that
// `docker load`, `podman load` and `ctr images import` read. It needs no container engine, and the same sources give the
// same bytes. With --push, it also pushes them to a registry; with --binaries, it packs programs that are built already.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
)

// programs are what there are images of. Paths inside the image are part of manifests that users have, so they stay.
var programs = []program{
	{name: "cloud-controller-manager", path: "cloud-controller-manager", link: "usr/local/bin/cloud-controller-manager"},
	{name: "provider-initor", path: "usr/bin/init"},
	{
		name: "alicloud-emulator", path: "alicloud-emulator", port: "18080",
		// Loopback is the container's own there: whoever publishes the port says who reaches it.
		env: []string{"ALICLOUD_EMULATOR_LISTEN=:18080", "ALICLOUD_EMULATOR_ADMIN_CLIENTS=any"},
	},
}

// program is a command of the main module.
type program struct {
	name string // of the command and of the image
	path string // of the binary in the image
	link string // to it, where other manifests look for it; empty for none
	port string // TCP port that the program serves by default; empty if that is none of the image's business
	env  []string
}

// options are the flags.
type options struct {
	root, out, version, repository string
	binaries                       string // directory of programs to take as they are; empty to compile them
	tree, push                     bool
	licenses                       string // file for the licences of the programs in the arguments, instead of images
	architectures                  []string
}

func main() {
	var opts options
	var architectures string
	flag.StringVar(&opts.root, "root", "../..", "directory of the main module")
	flag.StringVar(&opts.binaries, "binaries", "",
		"directory of static programs for the architecture, to make the images of these instead of compiling them")
	flag.StringVar(&opts.out, "out", "../../dist", "directory of the archives")
	flag.StringVar(&opts.version, "version", "v0.0.0", "version, also the image's tag")
	flag.StringVar(&opts.repository, "repository", "ghcr.io/alicloud-ccm", "what stands before the image's name")
	flag.StringVar(&architectures, "arch", "amd64,arm64", "architectures, separated by commas")
	flag.BoolVar(&opts.push, "push", false,
		"push the images to the registry at the beginning of --repository, with the credentials of docker login")
	flag.BoolVar(&opts.tree, "tree", false, "write the files of the images for the first architecture into directories, and no archives")
	flag.StringVar(&opts.licenses, "licenses", "", "write the licences of the programs in the arguments into this file, and make no images")
	flag.Parse()
	opts.architectures = strings.Split(architectures, ",")

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, opts)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "image: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, opts options) error {
	if opts.licenses != "" {
		return writeLicenses(opts.licenses, flag.Args())
	}
	if opts.tree {
		return writeTrees(ctx, opts, opts.out)
	}
	scratch, err := os.MkdirTemp("", "image-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	if err := os.MkdirAll(opts.out, 0o755); err != nil {
		return err
	}
	for _, p := range programs {
		layoutDir := filepath.Join(scratch, p.name)
		reference := opts.repository + "/" + p.name + ":" + strings.TrimPrefix(opts.version, "v")
		if err := writeLayout(ctx, opts, p, reference, layoutDir); err != nil {
			return fmt.Errorf("image of %s: %w", p.name, err)
		}
		archive := filepath.Join(opts.out, p.name+".tar")
		if err := archiveDir(layoutDir, archive); err != nil {
			return fmt.Errorf("image of %s: %w", p.name, err)
		}
		fmt.Printf("%s: %s\n", archive, reference)
		if opts.push {
			digest, err := push(ctx, layoutDir, reference)
			if err != nil {
				return fmt.Errorf("push %s: %w", reference, err)
			}
			fmt.Printf("pushed %s@%s\n", reference, digest)
		}
	}
	return nil
}
