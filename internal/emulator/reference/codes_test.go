package reference_test

import (
	"go/ast"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/facts"
)

// otherCodes are codes that the manager knows beside those that the emulator answers: for each, the fact whose refusal may have it instead.
var otherCodes = map[string]string{
	"IllegalParam.Servers":           "nlb.IllegalParamSize.Servers",
	"InvalidMaxResult":               "vpc.page-500",
	"InvalidMaxResults":              "vpc.page-500",
	"InvalidNextHop.NotFound":        "vpc.InvalidNextHopId.NotFound",
	"InvalidParameter.MaxResult":     "vpc.page-500",
	"InvalidRegionId":                "common.InvalidRegionId.NotFound",
	"OperationFailed.InvalidNexthop": "vpc.InvalidNextHopId.NotFound",
}

// TestCodesOfTheManagerAreFacts: each code by which the manager decides, in whichever package, is that of a fact, so that a scenario of the
// conformance suite asks the cloud for it. TestCodesAreFacts of pkg/alicloud does the same for the tables there.
func TestCodesOfTheManagerAreFacts(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for _, f := range facts.All() {
		if f.Flippable() && f.Code != "" {
			known[strings.ToLower(f.Code)], known[strings.ToLower(f.FlipCode)] = true, true
		}
	}
	asked := 0
	for code, where := range codesOfTheManager(t) {
		asked++
		fact, other := otherCodes[code]
		if _, ok := facts.Get(fact); other && !ok {
			t.Errorf("%s is said to be another code of %s, which is no fact", code, fact)
		}
		if !other && !known[strings.ToLower(code)] {
			t.Errorf("%s decides by the code %s, which is that of no fact, and not among otherCodes", where, code)
		}
	}
	if asked < 20 {
		t.Errorf("only %d codes were found", asked)
	}
}

// codesOfTheManager are the codes in calls of HasCode, with the file of one of them.
func codesOfTheManager(t *testing.T) map[string]string {
	t.Helper()
	files, values := map[string]*ast.File{}, map[string][]string{}
	err := filepath.WalkDir(filepath.Join(root, "pkg"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") {
			files[path] = parsed(t, path)
			declaredTexts(files[path], values)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	codes := map[string]string{}
	for path, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) < 2 || nameOf(call.Fun) != "HasCode" {
				return true
			}
			for _, arg := range call.Args[1:] {
				found := texts(arg)
				if name := nameOf(arg); name != "" {
					found = values[name]
				}
				if len(found) == 0 {
					t.Errorf("%s: the code in a call of HasCode is neither a text nor declared by one", path)
				}
				for _, code := range found {
					codes[code] = path
				}
			}
			return true
		})
	}
	return codes
}

// declaredTexts collects the texts of constants and variables by their names.
func declaredTexts(file *ast.File, values map[string][]string) {
	for _, d := range file.Decls {
		declaration, ok := d.(*ast.GenDecl)
		if !ok || declaration.Tok != token.CONST && declaration.Tok != token.VAR {
			continue
		}
		for _, spec := range declaration.Specs {
			value, ok := spec.(*ast.ValueSpec)
			if !ok {
				continue
			}
			for i := range min(len(value.Names), len(value.Values)) {
				values[value.Names[i].Name] = texts(value.Values[i])
			}
		}
	}
}

// texts are the texts in an expression.
func texts(e ast.Expr) []string {
	var found []string
	ast.Inspect(e, func(n ast.Node) bool {
		if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING {
			if text, err := strconv.Unquote(literal.Value); err == nil {
				found = append(found, text)
			}
		}
		return true
	})
	return found
}

// nameOf is the name of an identifier, also behind that of a package.
func nameOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}
