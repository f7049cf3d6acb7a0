package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// codeReference is a path or an identifier of the code in a page: `pkg/slb`, `pkg/slb/doc.go`, `pkg/slb.Record`, `pkg/slb.Controller.Run`.
// An identifier may be unexported.
var codeReference = regexp.MustCompile("`((?:cmd|pkg|internal|sandbox|hack|charts|deploy|docs)(?:/[A-Za-z0-9_-]+)+)((?:\\.[A-Za-z0-9_-]+)*)/?`")

// TestCodeExists checks that every path and every identifier of the code in a page exists. The changelog names what existed at a version.
func TestCodeExists(t *testing.T) {
	t.Parallel()
	packages := map[string]map[string]bool{}
	seen := 0
	for path, text := range pages(t) {
		if path == "CHANGELOG.md" {
			continue
		}
		for _, match := range codeReference.FindAllStringSubmatch(text, -1) {
			seen++
			directory, name := match[1], strings.TrimPrefix(match[2], ".")
			if exists(directory+match[2]) || exists(filepath.Dir(path)+"/"+directory+match[2]) {
				continue
			}
			if packages[directory] == nil {
				packages[directory] = declarations(t, directory)
			}
			if !packages[directory][name] {
				t.Errorf("%s: %s%s is neither a path nor a declaration", path, match[1], match[2])
			}
		}
	}
	if seen < 50 {
		t.Errorf("found %d references to the code: where are the others?", seen)
	}
}

func exists(path string) bool {
	_, err := os.Stat(filepath.Join(root, path))
	return err == nil
}

// declarations returns the names that a package declares outside its tests: Name, Type.Method and Type.Field. It is empty where there
// is no package.
func declarations(t *testing.T, directory string) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, directory, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, path := range files {
		if !strings.HasSuffix(path, "_test.go") {
			maps.Copy(names, declared(t, path))
		}
	}
	return names
}

// declared returns the names that a file declares, like [declarations].
func declared(t *testing.T, path string) map[string]bool {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, declaration := range file.Decls {
		switch declaration := declaration.(type) {
		case *ast.FuncDecl:
			names[receiver(declaration)+declaration.Name.Name] = true
		case *ast.GenDecl:
			for _, spec := range declaration.Specs {
				addSpec(names, spec)
			}
		}
	}
	return names
}

// receiver returns "Type." for a method, and nothing for a function.
func receiver(function *ast.FuncDecl) string {
	if function.Recv == nil {
		return ""
	}
	kind := function.Recv.List[0].Type
	if pointer, ok := kind.(*ast.StarExpr); ok {
		kind = pointer.X
	}
	if generic, ok := kind.(*ast.IndexExpr); ok {
		kind = generic.X
	}
	if name, ok := kind.(*ast.Ident); ok {
		return name.Name + "."
	}
	return ""
}

func addSpec(names map[string]bool, spec ast.Spec) {
	switch spec := spec.(type) {
	case *ast.ValueSpec:
		for _, name := range spec.Names {
			names[name.Name] = true
		}
	case *ast.TypeSpec:
		names[spec.Name.Name] = true
		var members *ast.FieldList
		switch kind := spec.Type.(type) {
		case *ast.StructType:
			members = kind.Fields
		case *ast.InterfaceType:
			members = kind.Methods
		default:
			return
		}
		for _, member := range members.List {
			for _, name := range member.Names {
				names[spec.Name.Name+"."+name.Name] = true
			}
		}
	}
}
