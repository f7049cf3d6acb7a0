package docs

import (
	"bytes"
	"go/ast"
	"go/build"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// flowEntry is a line of a list in "A Service from event to cloud": its number, a directory, a function or method in it, and what it does.
var flowEntry = regexp.MustCompile("(?m)^(\\d+)\\. `([a-z/]+)\\.([A-Za-z.]+)`: (.*)$")

// TestServiceFlowIsInCallingOrder checks the lists in docs/architecture.md: each function exists, and an earlier one uses it, the method of
// just this type or of an interface that the type implements, unless the list names it an entry point. The list of NLBs continues that of
// CLBs.
func TestServiceFlowIsInCallingOrder(t *testing.T) {
	t.Parallel()
	_, text, _ := strings.Cut(pages(t)["docs/architecture.md"], "### A Service from event to cloud")
	text, _, _ = strings.Cut(text, "\n## ")
	lists := strings.Split(text, "\n#### ")
	if len(lists) != 2 {
		t.Fatalf("found %d lists, want that of CLBs and that of NLBs", len(lists))
	}
	code := loadCode(t)
	used := map[string]*types.Func{}
	for _, list := range lists {
		entries := flowEntry.FindAllStringSubmatch(list, -1)
		if len(entries) < 5 {
			t.Fatalf("found %d functions: where are the others?", len(entries))
		}
		for i, entry := range entries {
			directory, name, text := entry[2], entry[3], entry[4]
			if entry[1] != strconv.Itoa(i+1) {
				t.Errorf("%s.%s has the number %s, want %d", directory, name, entry[1], i+1)
			}
			checked := code.check(t, directory)
			function := checked.functions[name]
			if function == nil {
				t.Errorf("%s.%s does not exist", directory, name)
				continue
			}
			if !strings.HasPrefix(text, "entry point") && !checked.isUsed(function, used) {
				t.Errorf("%s.%s: no function before it in the list uses it", directory, name)
			}
			checked.uses(function, used)
		}
	}
}

// code type-checks packages of the repository. What they import comes from the build cache.
type code struct {
	files    *token.FileSet
	imports  types.Importer
	packages map[string]*checkedPackage
}

// checkedPackage is a package outside its tests. functions are those with a body, as Name and Type.Name.
type checkedPackage struct {
	types     *types.Package
	info      *types.Info
	functions map[string]*ast.FuncDecl
}

func loadCode(t *testing.T) *code {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", "list", "-export", "-deps", "-f", "{{with .Export}}{{$.ImportPath}} {{.}}{{end}}", "./pkg/...")
	list.Dir = root
	var failure bytes.Buffer
	list.Stderr = &failure
	out, err := list.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, &failure)
	}
	exports := map[string]string{}
	for line := range strings.Lines(string(out)) {
		if path, file, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			exports[path] = file
		}
	}
	c := &code{files: token.NewFileSet(), packages: map[string]*checkedPackage{}}
	c.imports = importer.ForCompiler(c.files, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	return c
}

// check returns a package by its directory.
func (c *code) check(t *testing.T, directory string) *checkedPackage {
	t.Helper()
	if known := c.packages[directory]; known != nil {
		return known
	}
	paths, err := filepath.Glob(filepath.Join(root, directory, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	p := &checkedPackage{info: &types.Info{Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{}}, functions: map[string]*ast.FuncDecl{}}
	var files []*ast.File
	for _, path := range paths {
		if built, err := build.Default.MatchFile(filepath.Split(path)); err != nil || !built || strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(c.files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
		for _, declaration := range file.Decls {
			if function, ok := declaration.(*ast.FuncDecl); ok && function.Body != nil {
				p.functions[receiver(function)+function.Name.Name] = function
			}
		}
	}
	config := types.Config{Importer: c.imports}
	if p.types, err = config.Check(module+directory, c.files, files, p.info); err != nil {
		t.Fatal(err)
	}
	c.packages[directory] = p
	return p
}

// uses adds the functions and methods that a function uses, by their full names.
func (p *checkedPackage) uses(function *ast.FuncDecl, used map[string]*types.Func) {
	ast.Inspect(function.Body, func(node ast.Node) bool {
		if name, ok := node.(*ast.Ident); ok {
			if object, ok := p.info.Uses[name].(*types.Func); ok {
				used[object.Origin().FullName()] = object.Origin()
			}
		}
		return true
	})
}

// isUsed reports whether a function is among those that are used, by itself or as the method of an interface that its type implements.
func (p *checkedPackage) isUsed(function *ast.FuncDecl, used map[string]*types.Func) bool {
	object, ok := p.info.Defs[function.Name].(*types.Func)
	if !ok {
		return false
	}
	if used[object.FullName()] != nil {
		return true
	}
	of := object.Signature().Recv()
	for _, method := range used {
		if of != nil && method.Name() == object.Name() && method.Signature().Recv() != nil && p.implements(of.Type(), method.Signature().Recv().Type()) {
			return true
		}
	}
	return false
}

// implements reports whether a type implements an interface. Packages that are checked here are not those that others import: the interface
// is found again among the imports.
func (p *checkedPackage) implements(receiver, of types.Type) bool {
	named, ok := of.(*types.Named)
	if !ok || !types.IsInterface(named) {
		return false
	}
	for _, imported := range slices.Concat(p.types.Imports(), []*types.Package{p.types}) {
		if imported.Path() != named.Obj().Pkg().Path() {
			continue
		}
		declared := imported.Scope().Lookup(named.Obj().Name())
		iface, ok := declared.Type().Underlying().(*types.Interface)
		return ok && types.Implements(receiver, iface)
	}
	return false
}
