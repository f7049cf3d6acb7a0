package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// flowEntry is a line of the list "A Service from event to cloud": a directory, a function or method in it, and what it does.
var flowEntry = regexp.MustCompile("(?m)^\\d+\\. `([a-z/]+)\\.([A-Za-z.]+)`: (.*)$")

// TestServiceFlowIsInCallingOrder checks the list in docs/architecture.md: each function exists, and an earlier one calls it, unless the
// list names it an entry point.
func TestServiceFlowIsInCallingOrder(t *testing.T) {
	t.Parallel()
	_, list, _ := strings.Cut(pages(t)["docs/architecture.md"], "### A Service from event to cloud")
	list, _, _ = strings.Cut(list, "\n## ")
	entries := flowEntry.FindAllStringSubmatch(list, -1)
	if len(entries) < 15 {
		t.Fatalf("found %d functions: where are the others?", len(entries))
	}
	used := map[string]bool{}
	packages := map[string]map[string]*ast.FuncDecl{}
	for _, entry := range entries {
		directory, name, text := entry[1], entry[2], entry[3]
		if packages[directory] == nil {
			packages[directory] = functions(t, directory)
		}
		function := packages[directory][name]
		if function == nil {
			t.Errorf("%s.%s does not exist", directory, name)
			continue
		}
		if !used[function.Name.Name] && !strings.HasPrefix(text, "entry point") {
			t.Errorf("%s.%s: no function before it in the list uses it", directory, name)
		}
		ast.Inspect(function.Body, func(node ast.Node) bool {
			if name, ok := node.(*ast.Ident); ok {
				used[name.Name] = true
			}
			return true
		})
	}
}

// functions returns the functions and methods of a package, outside its tests, as Name and Type.Name.
func functions(t *testing.T, directory string) map[string]*ast.FuncDecl {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, directory, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]*ast.FuncDecl{}
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, declaration := range file.Decls {
			if function, ok := declaration.(*ast.FuncDecl); ok && function.Body != nil {
				all[receiver(function)+function.Name.Name] = function
			}
		}
	}
	return all
}
