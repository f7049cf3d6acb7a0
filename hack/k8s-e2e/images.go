package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/imagetar"
)

// dnsImage is the image in dns.yaml.
const dnsImage = "registry.k8s.io/coredns/coredns:sandbox"

// tools are programs of this host that the specs run in their pods, by where the image of Kubernetes, which is made of Alpine's packages,
// has them. Here they are Debian's.
var tools = []struct{ path, program, pkg string }{
	{"bin/sh", "dash", "dash"},
	{"usr/bin/curl", "curl", "curl"},
	{"usr/bin/nc", "nc.openbsd", "netcat-openbsd"},
	{"usr/bin/seq", "seq", "coreutils"},
	{"usr/bin/wget", "wget", "wget"},
}

// wgetrc makes wget give up as Alpine's does, after the first try: the specs ask it for what it must not reach.
const wgetrc = "tries = 1\n"

// writeImages writes the archive of the images that the specs and cluster DNS need.
func writeImages(ctx context.Context, archive, buildDir string) error {
	names, err := agnhostNames(ctx, filepath.Join(buildDir, "suite"))
	if err != nil {
		return err
	}
	files, err := toolFiles(ctx)
	if err != nil {
		return err
	}
	files["etc/wgetrc"] = archive + ".wgetrc"
	if err := os.WriteFile(files["etc/wgetrc"], []byte(wgetrc), 0o644); err != nil {
		return err
	}
	return imagetar.Write(archive, []imagetar.Image{
		{
			Names: names, Binary: filepath.Join(buildDir, "agnhost"), Paths: []string{"agnhost"}, Args: []string{"pause"},
			Env: []string{"PATH=/usr/bin:/bin:/"}, Files: files,
		},
		{Names: []string{dnsImage}, Binary: filepath.Join(buildDir, "coredns"), Paths: []string{"coredns"}},
	})
}

// agnhostNames are the names under which the specs ask for agnhost, the image of nearly all their pods.
func agnhostNames(ctx context.Context, suite string) ([]string, error) {
	out, err := exec.CommandContext(ctx, suite, "--list-images").Output()
	if err != nil {
		return nil, fmt.Errorf("ask the specs for their images (hack/k8s-e2e/build.sh makes them): %w", err)
	}
	var names []string
	for line := range strings.Lines(string(out)) {
		if name := strings.TrimSpace(line); strings.HasPrefix(name, "registry.k8s.io/") && strings.Contains(name, "/agnhost:") {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil, errors.New("the specs name no image agnhost")
	}
	return names, nil
}

// toolFiles are the tools and their libraries. The error names everything that is missing and how to install it.
func toolFiles(ctx context.Context) (map[string]string, error) {
	files := map[string]string{}
	var missing []string
	for _, tool := range tools {
		program, err := exec.LookPath(tool.program)
		if err != nil {
			missing = append(missing, fmt.Sprintf("%s (apt-get install %s)", tool.program, tool.pkg))
			continue
		}
		files[tool.path] = program
		libraries, err := exec.CommandContext(ctx, "ldd", program).Output()
		if err != nil {
			return nil, fmt.Errorf("find the libraries of %s with ldd: %w", program, err)
		}
		for _, library := range librariesOf(string(libraries)) {
			files[strings.TrimPrefix(library, "/")] = library
		}
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("the pods of the specs need programs that are missing:\n  %s", strings.Join(missing, "\n  "))
	}
	return files, nil
}

// library is what ldd prints of one: "libc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x...)", or a path only, of the loader.
var library = regexp.MustCompile(`(?m)(/\S+) \(0x[0-9a-f]+\)$`)

// librariesOf are the paths in ldd's output.
func librariesOf(ldd string) []string {
	var paths []string
	for _, match := range library.FindAllStringSubmatch(ldd, -1) {
		paths = append(paths, match[1])
	}
	return paths
}
