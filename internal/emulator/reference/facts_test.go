package reference_test

import (
	"encoding/json"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/conformance"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/facts"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/reference"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/golden"
)

const (
	root         = "../../.."
	factsPage    = root + "/docs/reference/emulator-tables/facts.md"
	coverageFile = "../facts/coverage.json"
	recordings   = "../recordings"
)

// make facts sets these: merge is a directory that tests wrote the facts into that they met.
var (
	merge = flag.String("merge", "", "write the coverage of facts anew, from this directory")
	add   = flag.Bool("add", false, "with -merge: keep what the coverage has, because only some tests ran")
)

// TestCoverageIsFresh: the tests that are said to meet facts exist, and so do the facts. With -update, those that do not are left out; make
// facts also finds new ones, in all packages or in one.
func TestCoverageIsFresh(t *testing.T) {
	t.Parallel()
	if *merge != "" {
		var known facts.Coverage
		var err error
		if *add {
			if known, err = facts.ReadCoverage(coverageFile); err != nil {
				t.Fatal(err)
			}
		}
		c, err := facts.Merge(*merge, known)
		if err != nil {
			t.Fatal(err)
		}
		golden.Fresh(t, coverageFile, encoded(t, c))
	}
	coverage, err := facts.ReadCoverage(coverageFile)
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]map[string]bool{}
	for id, packages := range coverage {
		if _, ok := facts.Get(id); !ok {
			delete(coverage, id)
		}
		for name, named := range packages {
			if tests[name] == nil {
				tests[name] = testsOf(t, filepath.Join(root, name))
			}
			packages[name] = slices.DeleteFunc(named, func(test string) bool { return !tests[name][test] })
			if len(packages[name]) == 0 {
				delete(packages, name)
			}
		}
	}
	maps.DeleteFunc(coverage, func(_ string, packages map[string][]string) bool { return len(packages) == 0 })
	golden.Fresh(t, coverageFile, encoded(t, coverage))
	if t.Failed() {
		t.Log("leave out what is gone: go test ./internal/emulator/reference -run TestCoverageIsFresh -update; add tests: make facts TESTS='./pkg/name -run TestName'")
	}
	for _, f := range facts.All() {
		if f.Flippable() && len(coverage[f.ID]) == 0 {
			t.Errorf("no test meets %s: make facts TESTS='./internal/emulator/conformance -run TestEmulatorConforms'", f.ID)
		}
	}
}

func encoded(t *testing.T, c facts.Coverage) string {
	t.Helper()
	data, err := json.MarshalIndent(c, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(data) + "\n"
}

// TestUncheckedFactsAreShown: each fact that no scenario can check names a test of the emulator that exists, and no other fact does.
func TestUncheckedFactsAreShown(t *testing.T) {
	t.Parallel()
	tests := map[string]bool{}
	for _, dir := range []string{"..", "../fabric", "../limits", root + "/sandbox/vpcnet"} {
		maps.Copy(tests, testsOf(t, dir))
	}
	for _, f := range facts.All() {
		if test := f.ShownBy(); f.Flippable() != (test == "") || test != "" && !tests[test] {
			t.Errorf("%s is shown by %q, and a scenario checks it: %t", f.ID, test, f.Flippable())
		}
	}
}

// testsOf are the names of the tests, fuzz targets and benchmarks of a package.
func testsOf(t *testing.T, dir string) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		for _, d := range parsed(t, path).Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil {
				found[f.Name.Name] = true
			}
		}
	}
	return found
}

func parsed(t *testing.T, path string) *ast.File {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func TestFactsPageIsFresh(t *testing.T) {
	t.Parallel()
	coverage, err := facts.ReadCoverage(coverageFile)
	if err != nil {
		t.Fatal(err)
	}
	measured, err := conformance.Measured(recordings)
	if err != nil {
		t.Fatal(err)
	}
	flips, err := facts.ReadFlips(flipsFile)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	d := reference.Dependents{Tests: coverage, Measured: measured, Flips: flips}
	if err := reference.Facts(&text, facts.All(), answers(t), d); err != nil {
		t.Fatal(err)
	}
	golden.FreshParts(t, factsPage, map[string]string{"facts": text.String()})
}

// answers are the facts about what actions answer.
func answers(t *testing.T) []facts.Fact {
	t.Helper()
	e, err := emulator.New(emulator.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	var all []facts.Fact
	for _, p := range e.Actions().Products() {
		for _, a := range p.Actions {
			all = append(all, facts.Answer(p.Name, a.Name))
		}
	}
	return all
}

// TestRefusalsAreFacts: whatever the code of the emulator refuses is a fact with that code and status.
func TestRefusalsAreFacts(t *testing.T) {
	t.Parallel()
	statuses := map[string]int{"BadRequest": 400, "NotFound": 404, "Forbidden": 403}
	for _, dir := range []string{"slb", "nlb", "vpc", "ecs", "sts", "quotas", "rpc", "limits"} {
		files, err := filepath.Glob("../" + dir + "/*.go")
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range files {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			ast.Inspect(parsed(t, path), func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok || len(call.Args) == 0 {
					return true
				}
				function, ok := call.Fun.(*ast.SelectorExpr)
				if !ok || statuses[function.Sel.Name] == 0 {
					return true
				}
				literal, ok := call.Args[0].(*ast.BasicLit)
				if !ok {
					return true
				}
				code, err := strconv.Unquote(literal.Value)
				if err != nil {
					t.Fatal(err)
				}
				if facts.OfRefusal(dir, code, statuses[function.Sel.Name]) == nil {
					t.Errorf("%s refuses with %d %s, which is no fact", path, statuses[function.Sel.Name], code)
				}
				return true
			})
		}
	}
}

// TestHeldFactsExist: the facts that actions ask for are in the tables.
func TestHeldFactsExist(t *testing.T) {
	t.Parallel()
	held := map[string]bool{}
	files, err := filepath.Glob("../*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	gateway, err := filepath.Glob("../*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range append(files, gateway...) {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		ast.Inspect(parsed(t, path), func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) == 0 {
				return true
			}
			function, ok := call.Fun.(*ast.SelectorExpr)
			literal, isText := call.Args[len(call.Args)-1].(*ast.BasicLit)
			if !ok || !isText || function.Sel.Name != "Holds" && function.Sel.Name != "holds" {
				return true
			}
			id, err := strconv.Unquote(literal.Value)
			if err != nil {
				t.Fatal(err)
			}
			held[id] = true
			if _, ok := facts.Get(id); !ok {
				t.Errorf("%s asks for %s, which is no fact", path, id)
			}
			return true
		})
	}
	for _, f := range facts.All() {
		if f.Code == "" && f.Flippable() && !held[f.ID] {
			t.Errorf("no action asks whether %s holds", f.ID)
		}
	}
}

// TestTestsByChanceExist: a renamed one would be named again in some runs of make facts, and not in others.
func TestTestsByChanceExist(t *testing.T) {
	t.Parallel()
	for _, named := range facts.ByChance() {
		name, test, _ := strings.Cut(named, " ")
		if !testsOf(t, filepath.Join(root, name))[test] {
			t.Errorf("package facts leaves out %s, which does not exist", named)
		}
	}
}

// TestSwitchesFlipFacts: each switch of the emulator flips a fact, and so is flipped by the tests of replay, which flip every fact that can
// be flipped. A switch that flips none would be tested by nobody who does not know it.
func TestSwitchesFlipFacts(t *testing.T) {
	t.Parallel()
	flipped := map[string]bool{"flipped": true}
	for _, f := range facts.All() {
		var settings map[string]json.RawMessage
		if body := f.Switch(); body != "" {
			if err := json.Unmarshal([]byte(body), &settings); err != nil {
				t.Errorf("%s: %s: %v", f.ID, body, err)
			}
		}
		for name := range settings {
			flipped[name] = true
		}
	}
	for field := range reflect.TypeFor[cloud.Switches]().Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if !flipped[name] {
			t.Errorf("the switch %s flips no fact: add one to package facts whose Settings set it", name)
		}
	}
}

// TestAssumedFactsHaveASwitch: an unknown fact about the cloud is a switch, so that both sides are tested. One that is about the value of a
// setting has that instead, which the reference of the emulator describes.
func TestAssumedFactsHaveASwitch(t *testing.T) {
	t.Parallel()
	described, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range facts.All() {
		switch {
		case f.Flippable() == (f.Setting != ""):
			t.Errorf("%s has the switch %q and the setting %q", f.ID, f.Switch(), f.Setting)
		case f.Setting != "" && !strings.Contains(string(described), "`"+f.Setting+"`"):
			t.Errorf("%s is about the setting %s, which %s does not describe", f.ID, f.Setting, page)
		case f.Setting != "" && f.Source.State != facts.Assumed:
			t.Errorf("%s is %s, and is about a setting", f.ID, f.Source.State)
		}
	}
}
