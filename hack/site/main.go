// Command site builds the documentation as a static site with Hugo: the Markdown of this tree, and that of each release.
//
// It is a module of its own, so that the product's go.mod stays free of Hugo.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
)

const (
	root       = "../.."
	repository = "https://github.com/alicloud-ccm/cloud-provider-alicloud"
)

func main() {
	out := flag.String("out", filepath.Join(root, "bin", "site"), "directory for the site; what is there is replaced")
	from := flag.String("root", root, "checkout of the project")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := build(ctx, *from, *out); err != nil {
		fmt.Fprintln(os.Stderr, "site:", err)
		stop()
		os.Exit(1) //nolint:gocritic // stop has run
	}
}

// build makes the site of all versions of a checkout in the directory out.
func build(ctx context.Context, checkout, out string) error {
	hugo, err := exec.CommandContext(ctx, "go", "tool", "-n", "github.com/gohugoio/hugo").Output()
	if err != nil {
		return fmt.Errorf("build Hugo: %w", err)
	}
	versions, err := versionsOf(ctx, checkout)
	if err != nil {
		return err
	}
	if out, err = filepath.Abs(out); err != nil {
		return err
	}
	if err = os.RemoveAll(out); err != nil {
		return err
	}
	for i := range versions {
		if versions[i].pages, err = readPages(ctx, checkout, versions[i].Tag); err != nil {
			return err
		}
	}
	for _, v := range versions {
		if err := v.build(ctx, strings.TrimSpace(string(hugo)), versions, out); err != nil {
			return fmt.Errorf("version %s: %w", v.Name, err)
		}
	}
	return os.WriteFile(filepath.Join(out, "index.html"),
		[]byte(`<!doctype html><html lang="en"><meta charset="utf-8"><title>cloud-provider-alicloud</title>`+
			`<meta http-equiv="refresh" content="0; url=`+versions[0].Name+`/"><a href="`+versions[0].Name+`/">Documentation</a></html>`+"\n"), 0o644) //nolint:gosec // for a web server
}

// build makes the site of one version in a directory of its own.
func (v version) build(ctx context.Context, hugo string, all []version, out string) (err error) {
	tmp, err := os.MkdirTemp("", "site-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(tmp)) }()
	if err = v.pages.write(tmp); err != nil {
		return err
	}
	config, err := json.Marshal(v.config(all, tmp))
	if err != nil {
		return err
	}
	file := filepath.Join(tmp, "version.json")
	if err := os.WriteFile(file, config, 0o600); err != nil {
		return err
	}
	command := exec.CommandContext(ctx, hugo, "--quiet", "--noBuildLock", "--panicOnWarning", "--config", "hugo.yaml,"+file, "--cacheDir",
		filepath.Join(tmp, "cache"),
		"--contentDir", filepath.Join(tmp, "content"), "--destination", filepath.Join(out, v.Name))
	command.Env = append(os.Environ(), "HUGO_RESOURCEDIR="+filepath.Join(tmp, "resources"))
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	return command.Run()
}

// config is what Hugo knows of one version, besides hugo.yaml.
func (v version) config(all []version, tmp string) map[string]any {
	var menu []map[string]any
	for _, other := range all {
		menu = append(menu, map[string]any{"name": other.Name, "has": other.pages.urls()})
	}
	return map[string]any{
		"staticDir": []string{"static", filepath.Join(tmp, "static")},
		"params": map[string]any{
			"version": v.Name, "versions": menu, "repository": repository, "ref": v.ref(), "pages": v.pages.urls(),
		},
	}
}
