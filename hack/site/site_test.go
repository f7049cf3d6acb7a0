package main

import (
	"context"
	"encoding/json"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/html"
)

// built is the site of this tree, made once for all tests.
var built = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "built-")
	if err == nil {
		err = build(context.Background(), root, dir)
	}
	return filepath.Join(dir, "main"), err
})

func site(t *testing.T) string {
	t.Helper()
	dir, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestMain(m *testing.M) {
	code := m.Run()
	if dir, err := built(); err == nil {
		_ = os.RemoveAll(filepath.Dir(dir)) // of the temporary directory
	}
	os.Exit(code)
}

// document is what a page of the site links to, and can be linked to at.
type document struct {
	ids, links []string
	// attributes are those of elements that every page needs, by the name of the element.
	attributes map[string][]html.Attribute
}

// documents returns the pages of a site by their path.
func documents(t *testing.T, dir string) map[string]document {
	t.Helper()
	found := map[string]document{}
	err := filepath.WalkDir(dir, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path.Ext(file) != ".html" {
			return err
		}
		text, err := os.Open(file)
		if err != nil {
			return err
		}
		defer text.Close()
		tree, err := html.Parse(text)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, file)
		if err != nil {
			return err
		}
		d := document{attributes: map[string][]html.Attribute{}}
		for node := range tree.Descendants() {
			d.see(node)
		}
		found[filepath.ToSlash(name)] = d
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func (d *document) see(node *html.Node) {
	if node.Type != html.ElementNode {
		return
	}
	d.attributes[node.Data] = append(d.attributes[node.Data], node.Attr...)
	for _, a := range node.Attr {
		switch a.Key {
		case "id":
			d.ids = append(d.ids, a.Val)
		case "href", "src", "data-index":
			d.links = append(d.links, a.Val)
		}
	}
}

// TestEveryPageIsInTheSite: each Markdown file of the project, except templates and those that only the forge needs, is a page.
func TestEveryPageIsInTheSite(t *testing.T) {
	t.Parallel()
	list, err := exec.CommandContext(t.Context(), "git", "-C", root, "ls-files", "*.md", ":!hack", ":!.github", ":!internal",
		":!*/testdata/*").Output()
	if err != nil {
		t.Fatal(err)
	}
	dir := site(t)
	for _, name := range strings.Fields(string(list)) {
		p := place(name, nil)
		if p == nil {
			t.Errorf("%s has no place in the site: add it to places", name)
			continue
		}
		if _, err := os.Stat(filepath.Join(dir, p.url, "index.html")); err != nil {
			t.Error(err)
		}
	}
}

// TestLinks: every link inside of the site leads to a file of the site, and every anchor to an element there.
func TestLinks(t *testing.T) {
	t.Parallel()
	dir := site(t)
	pages := documents(t, dir)
	seen := 0
	for name, d := range pages {
		for _, link := range d.links {
			u, err := url.Parse(link)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			if u.IsAbs() || u.Host != "" {
				continue
			}
			seen++
			target := path.Clean(path.Join(path.Dir(name), u.Path))
			if u.Path == "" {
				target = name
			} else if strings.HasSuffix(u.Path, "/") {
				target = path.Join(target, "index.html")
			}
			target = strings.TrimPrefix(target, "../main/") // the menu of versions
			if _, err := os.Stat(filepath.Join(dir, target)); err != nil {
				t.Errorf("%s: link to %s: there is no %s", name, link, target)
			}
			if u.Fragment != "" && !slices.Contains(pages[target].ids, u.Fragment) {
				t.Errorf("%s: link to %s: no element of %s has this id", name, link, target)
			}
		}
	}
	if len(pages) < 60 || seen < 3000 {
		t.Errorf("%d pages with %d links: where are the others?", len(pages), seen)
	}
}

// TestLinksIntoTheRepository: a link to a file that is no page leads to an existing file.
func TestLinksIntoTheRepository(t *testing.T) {
	t.Parallel()
	const prefix = repository + "/blob/main/"
	seen := 0
	for name, d := range documents(t, site(t)) {
		for _, link := range d.links {
			file, ok := strings.CutPrefix(link, prefix)
			if !ok {
				continue
			}
			seen++
			file, _, _ = strings.Cut(file, "#")
			if _, err := os.Stat(filepath.Join(root, file)); err != nil {
				t.Errorf("%s: link to %s: %v", name, link, err)
			}
		}
	}
	if seen < 50 {
		t.Errorf("%d links into the repository: where are the others?", seen)
	}
}

// TestPagesAreComplete: each page has a title, a language, a width for phones, a search field and the button for the theme.
func TestPagesAreComplete(t *testing.T) {
	t.Parallel()
	for name, d := range documents(t, site(t)) {
		for element, want := range map[string]html.Attribute{
			"html": {Key: "lang", Val: "en"}, "meta": {Key: "name", Val: "viewport"}, "input": {Key: "type", Val: "search"},
			"button": {Key: "class", Val: "theme"},
			"main":   {Key: "id", Val: "content"},
		} {
			if !slices.Contains(d.attributes[element], want) {
				t.Errorf("%s: no <%s %s=%q>", name, element, want.Key, want.Val)
			}
		}
		if _, ok := d.attributes["h1"]; !ok {
			t.Errorf("%s has no heading", name)
		}
	}
}

// TestSearchIndex: the index has each page with its text, and headings that exist there.
func TestSearchIndex(t *testing.T) {
	t.Parallel()
	dir := site(t)
	text, err := os.ReadFile(filepath.Join(dir, "search-index.js"))
	if err != nil {
		t.Fatal(err)
	}
	encoded, ok := strings.CutPrefix(strings.TrimSpace(string(text)), "window.searchIndex = ")
	var index []struct {
		URL, Title, Text string
		Headings         []struct{ ID, Title string }
	}
	if err := json.Unmarshal([]byte(strings.TrimSuffix(encoded, ";")), &index); err != nil || !ok {
		t.Fatalf("%v, %.200s", err, text)
	}
	pages := documents(t, dir)
	for _, entry := range index {
		name := path.Join(entry.URL, "index.html")
		page, ok := pages[name]
		if !ok || entry.Title == "" || len(entry.Text) < 100 {
			t.Errorf("%+v has no page, no title or no text", entry.URL)
		}
		for _, heading := range entry.Headings {
			if !slices.Contains(page.ids, heading.ID) {
				t.Errorf("%s: there is no heading %s", name, heading.ID)
			}
		}
	}
	if len(index) < 55 || len(text) > 2<<20 {
		t.Errorf("%d entries in %d bytes", len(index), len(text))
	}
}

// TestVersions builds a checkout with releases: each has its pages as they were, and a menu of all versions that leads to the same page
// there, or to the start if there is none.
func TestVersions(t *testing.T) {
	t.Parallel()
	checkout, out := t.TempDir(), t.TempDir()
	script := `git init --quiet . && mkdir -p docs/how-to
	release() { git add --all && git -c user.name=a -c user.email=a@example.com commit --quiet --message "$1" && git tag "$1"; }
	printf '# Start\n\n- [Old](how-to/old.md)\n' >docs/README.md && printf '# Old\n' >docs/how-to/old.md && release v0.9.0
	printf '# New\n' >docs/how-to/new.md && release v0.10.0 && git tag v0.10.1-rc.1
	printf '\n[New](how-to/new.md)\n' >>docs/README.md`
	command := exec.CommandContext(t.Context(), "bash", "-euc", script)
	command.Dir = checkout
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	if err := build(t.Context(), checkout, out); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(out)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	if want := []string{"index.html", "main", "v0.10.0", "v0.9.0"}; !slices.Equal(names, want) {
		t.Errorf("the site has %v, want %v", names, want)
	}
	links := documents(t, out)["main/how-to/new/index.html"].links
	for _, want := range []string{"../../../main/how-to/new/", "../../../v0.10.0/how-to/new/", "../../../v0.9.0/"} {
		if !slices.Contains(links, want) {
			t.Errorf("the menu does not lead to %s: %v", want, links)
		}
	}
	if _, err := os.Stat(filepath.Join(out, "v0.9.0/how-to/new")); !os.IsNotExist(err) {
		t.Errorf("a page that came after v0.9.0 is there: %v", err)
	}
}
