package main

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// page is a file of the repository with its place in the site.
type page struct {
	text []byte
	// file is its path below content or static, and url its address below that of the version.
	file, url string
	// weight orders the pages of a section.
	weight int
}

// pages are the Markdown files and pictures of a version, by their path in the repository.
type pages map[string]*page

// urls is the address of each page below that of the version, by its path in lower case.
func (all pages) urls() map[string]string {
	urls := map[string]string{}
	for path, p := range all {
		urls[strings.ToLower(path)] = p.url
	}
	return urls
}

// sections are the directories of docs with their titles, in the order of the menu.
var sections = []struct{ dir, title string }{
	{"tutorials", "Tutorials"},
	{"how-to", "Guides"},
	{"examples", "Examples"},
	{"reference", "Reference"},
	{"runbooks", "Runbooks"},
	{"explanation", "Background"},
	{"contributing", "Contributing"},
	{"project", "Project"},
}

// places are pages outside of docs that a section holds.
var places = map[string]string{
	"README.md": "project/about.md", "CONTRIBUTING.md": "contributing/_index.md", "CHANGELOG.md": "project/changelog.md",
	"SECURITY.md":        "project/security.md",
	"CODE_OF_CONDUCT.md": "project/code-of-conduct.md", "SUPPORT.md": "project/support.md", "MAINTAINERS.md": "project/maintainers.md",
	"ROADMAP.md": "project/roadmap.md", "README.zh-CN.md": "project/about-zh.md", "sandbox/README.md": "contributing/sandbox.md",
	"charts/cloud-controller-manager/README.md": "reference/chart.md",
	"docs/README.md": "_index.md", "docs/architecture.md": "explanation/architecture.md",
}

// readPages reads the pages at a tag, or those of the tree if there is none.
func readPages(ctx context.Context, checkout, tag string) (pages, error) {
	files, err := readFiles(ctx, checkout, tag)
	if err != nil {
		return nil, err
	}
	found := pages{}
	for name, text := range files {
		if p := place(name, text); p != nil {
			found[name] = p
		}
	}
	start, ok := files["docs/README.md"]
	if !ok {
		return nil, fmt.Errorf("%s has no docs/README.md", checkout)
	}
	for i, match := range link.FindAllSubmatch(start, -1) {
		if p := found[path.Join("docs", string(match[1]))]; p != nil && p.weight == last {
			p.weight = i + 1
		}
	}
	return found, nil
}

// link is a link to a file, without its anchor.
var link = regexp.MustCompile(`\]\(([^)#: ]+)(?:#[^)]*)?\)`)

// last is the weight of pages that the list of all pages lacks.
const last = 1000

// place returns where a file is in the site, nil for nowhere.
func place(name string, text []byte) *page {
	p := &page{text: text, weight: last}
	rest, isDoc := strings.CutPrefix(name, "docs/")
	switch {
	case places[name] != "":
		p.file = places[name]
	case isDoc && path.Ext(name) == ".md" && path.Base(name) == "README.md":
		p.file = path.Join(path.Dir(rest), "_index.md")
	case isDoc && path.Ext(name) == ".md":
		p.file = rest
	case strings.HasPrefix(rest, "images/"):
		p.file, p.url = rest, rest
		return p
	default:
		return nil
	}
	p.url = strings.TrimSuffix(strings.TrimSuffix(p.file, ".md"), "_index")
	if p.url != "" && !strings.HasSuffix(p.url, "/") {
		p.url += "/"
	}
	return p
}

// readFiles reads what may be a page.
func readFiles(ctx context.Context, checkout, tag string) (map[string][]byte, error) {
	if tag != "" {
		output, err := exec.CommandContext(ctx, "git", "-C", checkout, "archive", tag).Output()
		if err != nil {
			return nil, fmt.Errorf("read the tag %s: %w", tag, err)
		}
		return unpack(output)
	}
	list, err := exec.CommandContext(ctx, "git", "-C", checkout, "ls-files", "-z", "--cached", "--others", "--exclude-standard", "*.md",
		"docs/images").Output()
	if err != nil {
		return nil, fmt.Errorf("list the pages: %w", err)
	}
	files := map[string][]byte{}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(list), "\x00"), "\x00") {
		if files[name], err = os.ReadFile(filepath.Join(checkout, name)); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// unpack returns the files of an archive.
func unpack(archive []byte) (map[string][]byte, error) {
	files, reader := map[string][]byte{}, tar.NewReader(bytes.NewReader(archive))
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, err
		}
		if header.Typeflag != tar.TypeReg {
			continue
		}
		if files[header.Name], err = io.ReadAll(reader); err != nil {
			return nil, err
		}
	}
}

// heading is the title of a page.
var heading = regexp.MustCompile(`(?m)^# (.+)$`)

// write writes the pages for Hugo: the Markdown as it is, behind a title that is its first heading.
func (all pages) write(dir string) error {
	for i, section := range sections {
		if err := writeFile(dir, "content/"+section.dir+"/_index.md", front(section.title, "", i+1), nil); err != nil {
			return err
		}
	}
	for name, p := range all {
		if path.Ext(name) != ".md" {
			if err := writeFile(dir, "static/"+p.file, nil, p.text); err != nil {
				return err
			}
			continue
		}
		title, weight := strings.TrimSuffix(path.Base(name), ".md"), p.weight
		if match := heading.FindSubmatch(p.text); match != nil {
			title = strings.ReplaceAll(string(match[1]), "`", "")
		}
		if i := slices.IndexFunc(sections, func(s struct{ dir, title string }) bool { return p.file == s.dir+"/_index.md" }); i >= 0 {
			title, weight = sections[i].title, i+1
		}
		if err := writeFile(dir, "content/"+p.file, front(title, name, weight), p.text); err != nil {
			return err
		}
	}
	return nil
}

// front is the front matter of a page.
func front(title, name string, weight int) []byte {
	text, err := json.Marshal(map[string]any{"title": title, "weight": weight, "params": map[string]string{"path": name}})
	if err != nil {
		panic(err) // strings and a number
	}
	return append(text, "\n\n"...)
}

func writeFile(dir, name string, parts ...[]byte) error {
	file := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	return os.WriteFile(file, bytes.Join(parts, nil), 0o600)
}
