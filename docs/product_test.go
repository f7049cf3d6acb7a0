package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"
)

// TestProductPageNamesEveryMethod: docs/contributing/add-a-product.md has each method that a driver has to implement. The driver that it
// refers to is compiled with the tests of pkg/service.
func TestProductPageNamesEveryMethod(t *testing.T) {
	t.Parallel()
	page := pages(t)["docs/contributing/add-a-product.md"]
	file, err := parser.ParseFile(token.NewFileSet(), root+"/pkg/service/driver/engine.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	ast.Inspect(file, func(node ast.Node) bool {
		spec, ok := node.(*ast.TypeSpec)
		if !ok {
			return true
		}
		declared, ok := spec.Type.(*ast.InterfaceType)
		if !ok {
			return true
		}
		optional := spec.Name.Name != "Engine" && spec.Name.Name != "Balancer" && spec.Name.Name != "Plan"
		if optional {
			if !strings.Contains(page, "`"+spec.Name.Name+"`") {
				t.Errorf("the page does not name the interface %s", spec.Name.Name)
			}
			return true
		}
		for _, method := range declared.Methods.List {
			found++
			if name := method.Names[0].Name; !strings.Contains(page, "`"+name+"`") {
				t.Errorf("the page does not name %s.%s", spec.Name.Name, name)
			}
		}
		return true
	})
	if found < 20 {
		t.Errorf("%d methods: where are the others?", found)
	}
}
