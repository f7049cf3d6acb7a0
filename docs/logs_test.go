package docs

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/golden"
)

const logsPage = root + "/docs/reference/logs.md"

// message is a log message of the manager.
type message struct{ level, text string }

// TestLogsPageIsFresh compares the tables of messages with the calls in the code.
func TestLogsPageIsFresh(t *testing.T) {
	t.Parallel()
	found := map[message]bool{}
	for _, dir := range []string{"cmd/cloud-controller-manager", "pkg", "internal/leadership", "internal/healthport", "internal/events", "internal/workers"} {
		messagesIn(t, filepath.Join(root, dir), found)
	}
	var text strings.Builder
	text.WriteString("| level | message |\n| --- | --- |\n")
	for _, m := range slices.SortedFunc(maps.Keys(found), func(a, b message) int { return strings.Compare(a.level+a.text, b.level+b.text) }) {
		fmt.Fprintf(&text, "| %s | `%s` |\n", m.level, m.text)
	}
	golden.FreshParts(t, logsPage, map[string]string{"messages": text.String()})
	if len(found) < 40 {
		t.Errorf("%d messages found, want those of the whole manager", len(found))
	}
}

// messagesIn adds the messages of the code below a directory. Programs on nodes and workstations have pages of their own.
func messagesIn(t *testing.T, dir string, found map[message]bool) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && strings.HasSuffix(path, "pkg/initor"):
			return filepath.SkipDir
		case entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		constants := constantsOf(file)
		ast.Inspect(file, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				if m, ok := messageOf(call, constants); ok {
					found[m] = true
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// argumentOf is which argument of a call of a logger is the message.
var argumentOf = map[string]int{"Info": 0, "InfoS": 0, "Error": 1, "ErrorS": 1}

func messageOf(call *ast.CallExpr, constants map[string]string) (message, bool) {
	selector, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || !isLogger(selector.X) {
		return message{}, false
	}
	index, ok := argumentOf[selector.Sel.Name]
	if !ok || len(call.Args) <= index {
		return message{}, false
	}
	level := "0"
	if strings.HasPrefix(selector.Sel.Name, "Error") {
		level = "error"
	}
	if verbose, ok := selector.X.(*ast.CallExpr); ok {
		if of, ok := verbose.Fun.(*ast.SelectorExpr); ok && of.Sel.Name == "V" {
			level = verbose.Args[0].(*ast.BasicLit).Value //nolint:forcetypeassert // levels are literals
		}
	}
	text, ok := textOf(call.Args[index], constants)
	return message{level, text}, ok
}

// isLogger reports whether an expression is klog, klog.FromContext(ctx), klog.Background(), a variable called logger, or V of one of these.
func isLogger(x ast.Expr) bool {
	switch x := x.(type) {
	case *ast.Ident:
		return x.Name == "klog" || x.Name == "logger"
	case *ast.CallExpr:
		if selector, ok := x.Fun.(*ast.SelectorExpr); ok {
			return isLogger(selector.X)
		}
	}
	return false
}

// textOf evaluates literals, constants of the file, and sums of these.
func textOf(x ast.Expr, constants map[string]string) (string, bool) {
	switch x := x.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(x.Value)
		return text, err == nil
	case *ast.Ident:
		text, ok := constants[x.Name]
		return text, ok
	case *ast.BinaryExpr:
		left, ok := textOf(x.X, constants)
		right, also := textOf(x.Y, constants)
		return left + right, ok && also
	}
	return "", false
}

func constantsOf(file *ast.File) map[string]string {
	found := map[string]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Names) != 1 || len(spec.Values) != 1 {
			return true
		}
		if literal, ok := spec.Values[0].(*ast.BasicLit); ok && literal.Kind == token.STRING {
			found[spec.Names[0].Name] = constant.StringVal(constant.MakeFromLiteral(literal.Value, literal.Kind, 0))
		}
		return true
	})
	return found
}
