package docs

import (
	"cmp"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
)

// TestNamedTestsFail breaks what the rows of "Where do I change X?" name, one at a time, and expects the test of the row to fail: a reader who
// changes the declaration sees there what it does. A function returns nothing, a table has no entries.
func TestNamedTestsFail(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	seen := 0
	for _, row := range change.FindAllStringSubmatch(pages(t)["CONTRIBUTING.md"], -1) {
		path, symbol, name := row[2], row[3], row[4]
		if name == "" {
			continue
		}
		seen++
		directory := cmp.Or(row[5], filepath.Dir(path))
		t.Run(symbol, func(t *testing.T) {
			command := exec.CommandContext(t.Context(), "go", "test", "-vet=off", "-count=1", "-short", "-run", "^"+name+"$",
				"-overlay", overlay(t, path, symbol), "./"+directory)
			command.Dir = root
			output, err := command.CombinedOutput()
			if err == nil || !strings.Contains(string(output), "--- FAIL: "+name) {
				t.Errorf("%s with a broken %s: %v, want a failure of %s\n%s", path, symbol, err, name, output[max(0, len(output)-2000):])
			}
		})
	}
	if seen < 10 {
		t.Errorf("CONTRIBUTING.md names %d tests, want 10 or more", seen)
	}
}

// overlay writes what -overlay of the go command takes, in which the declaration of a file is broken.
func overlay(t *testing.T, path, symbol string) string {
	t.Helper()
	original, err := filepath.Abs(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile(original)
	if err != nil {
		t.Fatal(err)
	}
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, original, source, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	broken := ""
	cut := func(from, to token.Pos, instead string) {
		broken = string(source[:files.Position(from).Offset]) + instead + string(source[files.Position(to).Offset:])
	}
	ast.Inspect(file, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.FuncDecl:
			if receiver(node)+node.Name.Name == symbol {
				text := func(n ast.Node) string {
					return string(source[files.Position(n.Pos()).Offset:files.Position(n.End()).Offset])
				}
				cut(node.Body.Lbrace+1, node.Body.Lbrace+1, returnNothing(node.Type.Results, text))
			}
			return false
		case *ast.ValueSpec:
			if node.Names[0].Name != symbol {
				break
			}
			switch value := node.Values[0].(type) {
			case *ast.CompositeLit:
				cut(value.Lbrace+1, value.Rbrace, "")
			case *ast.CallExpr: // a set
				cut(value.Lparen+1, value.Rparen, `"none"`)
			case *ast.BasicLit:
				cut(value.Pos(), value.End(), `"broken on purpose"`)
			}
		}
		return true
	})
	if broken == "" {
		t.Fatalf("%s does not declare %s as a function, a table or a text", path, symbol)
	}
	directory := t.TempDir()
	replacement, list := filepath.Join(directory, "broken.go"), filepath.Join(directory, "overlay.json")
	text, err := json.Marshal(map[string]map[string]string{"Replace": {original: replacement}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(replacement, []byte(broken), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(list, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return list
}

// returnNothing is a statement that returns zero values, before the rest of a function.
func returnNothing(results *ast.FieldList, text func(ast.Node) string) string {
	var declarations, names string
	if results != nil {
		for _, field := range results.List {
			for range max(1, len(field.Names)) {
				name := fmt.Sprintf("zero%d", len(declarations))
				declarations, names = declarations+"var "+name+" "+text(field.Type)+"; ", names+", "+name
			}
		}
	}
	return " if true { " + declarations + "return " + strings.TrimPrefix(names, ", ") + " };"
}
