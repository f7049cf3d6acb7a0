package alicloud

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestActionsAreThoseOfTheCode compares the table, from which the RAM policies are made, with the calls in the source.
func TestActionsAreThoseOfTheCode(t *testing.T) {
	t.Parallel()
	files, err := parser.ParseDir(token.NewFileSet(), ".", nil, 0) //nolint:staticcheck // one directory, no build tags
	if err != nil {
		t.Fatal(err)
	}
	var called []string
	for name, file := range files["alicloud"].Files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			if method, ok := call.Fun.(*ast.SelectorExpr); ok && (method.Sel.Name == "call" || strings.HasSuffix(method.Sel.Name, "Write")) {
				for _, name := range namesIn(call.Args[1]) {
					called = append(called, productOf(call, method)+":"+name)
				}
			}
			return true
		})
	}
	var declared []string
	for _, action := range Actions() {
		declared = append(declared, action.RAM())
	}
	called = slices.DeleteFunc(called, func(name string) bool { return name == "sts:GetCallerIdentity" }) // needs no permission
	slices.Sort(called)
	slices.Sort(declared)
	if diff := cmp.Diff(slices.Compact(called), declared); diff != "" {
		t.Errorf("actions of the code (-) and of the table in actions.go (+) differ:\n%s", diff)
	}
}

// productOf returns the product of a call: an argument, or the beginning of the method's name. The other methods are of CLB.
func productOf(call *ast.CallExpr, method *ast.SelectorExpr) string {
	name := method.Sel.Name
	if p, ok := call.Args[min(2, len(call.Args)-1)].(*ast.Ident); ok && name == "call" {
		name = strings.TrimPrefix(p.Name, "product")
	}
	for _, product := range []string{"nlb", "vpc", "ecs", "quotas", "sts"} {
		if strings.HasPrefix(strings.ToLower(name), product) {
			return product
		}
	}
	return "slb"
}

// namesIn returns the actions that an argument can be: a literal, or one with the protocol of a listener in its middle. What
// is handed through is found where it begins.
func namesIn(argument ast.Expr) []string {
	switch e := argument.(type) {
	case *ast.BasicLit:
		name, err := strconv.Unquote(e.Value)
		if err != nil {
			return nil
		}
		return []string{name}
	case *ast.BinaryExpr:
		inner, ok := e.X.(*ast.BinaryExpr)
		if !ok {
			return nil
		}
		var names []string
		for _, protocol := range []string{"TCP", "UDP", "HTTP", "HTTPS"} {
			for _, begin := range namesIn(inner.X) {
				for _, end := range namesIn(e.Y) {
					names = append(names, begin+protocol+end)
				}
			}
		}
		return names
	default:
		return nil
	}
}

func TestActionsAreComplete(t *testing.T) {
	t.Parallel()
	for _, action := range Actions() {
		if action.Product == "" || len(action.Features) == 0 || action.Why == "" || action.probe == nil {
			t.Errorf("action %+v lacks something", action)
		}
	}
}
