// Package archtest holds the module to its architecture: which package may import which, and why. See
// docs/reference/packages.md. The linter has the coarser of these rules too; this test runs where nobody lints.
package archtest

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/alicloud-ccm/cloud-provider-alicloud"

// A rule forbids imports. Paths beginning with "./" are of this module; each path stands for itself and all below it.
type rule struct {
	who    []string // packages it binds; none: all
	except []string // packages it does not bind
	must   []string // imports that it forbids
	but    []string // imports that it allows nevertheless
	tests  bool     // binds tests too
	why    string
}

// pure are the packages that decide; impure is what reads, writes or keeps time for them.
var (
	pure = []string{
		"./pkg/service/problem", "./pkg/service/mark", "./pkg/service/annotation", "./pkg/service/backend", "./pkg/service/policy",
		"./pkg/service/sharing",
		"./pkg/slb/model", "./pkg/slb/build", "./pkg/slb/diff", "./pkg/nlb/model", "./pkg/nlb/build", "./pkg/nlb/diff",
	}
	impure = []string{
		"context", "net/http", "os", "sync", "k8s.io/client-go", "k8s.io/klog", "k8s.io/component-base", "./pkg/slb/observe", "./pkg/slb/deploy",
		"./pkg/nlb/observe", "./pkg/nlb/deploy",
	}
)

var rules = []rule{
	{
		except: []string{"./pkg/alicloud", "./internal/emulator/conformance"}, must: []string{"github.com/aliyun"},
		why: "one package knows the SDK: its globals, its races and its spelling of fields must not spread; conformance calls actions by name",
	},
	{
		who: []string{"./pkg/alicloud"}, must: []string{"k8s.io", "."},
		but: []string{"k8s.io/klog/v2", "k8s.io/component-base/metrics", "k8s.io/apimachinery/pkg/util/sets", "./internal/instruments"},
		why: "the cloud client knows nothing of Kubernetes objects, and nothing of the packages above it",
	},
	{
		who: pure, must: impure,
		why: "deciding is pure: what reads or writes could not be shown as a plan before it happens, nor be tested with a table",
	},
	{
		who: pure, must: []string{"./pkg/service"}, but: slices.Concat(pure, []string{"./pkg/service/config"}), tests: true,
		why: "the frame calls those that decide; with the frame they would have its clients, clocks and queues",
	},
	{
		who: []string{"./pkg/service"}, must: []string{"./pkg/slb", "./pkg/nlb"}, tests: true,
		why: "the frame knows no product: a second one must be able to stand beside the first without a copied line",
	},
	{
		who: []string{"./pkg/slb", "./pkg/nlb", "./pkg/service/groups"}, must: []string{"./pkg/service"},
		but: slices.Concat(pure, []string{"./pkg/service/config", "./pkg/service/driver", "./pkg/service/groups", "./pkg/service/presence",
			"./pkg/service/quota", "./pkg/service/refusal"}),
		why: "a product implements the driver interfaces, and knows nothing of the controller that calls it",
	},
	{
		who: []string{"./pkg/service/presence"}, must: []string{"."},
		but: []string{"./pkg/service/presence", "./pkg/service/problem", "./internal/absence", "./internal/waits"}, tests: true,
		why: "what proves that a load balancer is gone must not depend on who asks, nor on the product",
	},
	{
		who: []string{"./pkg/nlb"}, must: []string{"./pkg/slb", "./pkg/vpcroute", "./pkg/node", "./pkg/provider", "./pkg/initor"}, tests: true,
		why: "two products do not know each other: what both need is in the frame",
	},
	{
		who: []string{"./pkg/nlb/observe"}, must: []string{"./pkg/nlb/build", "./pkg/nlb/diff", "./pkg/nlb/deploy"},
		why: "reading the cloud must not depend on what is wanted: an answer proves only what it says",
	},
	{
		who: []string{"./pkg/nlb/deploy"}, must: []string{"./pkg/nlb/build", "./pkg/nlb/diff", "./pkg/nlb/observe"},
		why: "a plan is data: whoever carries it out neither decides nor reads",
	},
	{
		who: []string{"./pkg/nlb/build"}, must: []string{"./pkg/nlb/diff"},
		why: "what is wanted does not depend on how it is reached",
	},
	{
		who: []string{"./pkg/nlb/diff", "./pkg/slb/diff"}, must: []string{"./pkg/nlb/build", "./pkg/slb/build"},
		why: "a difference is one of two models: where they come from is nothing to it",
	},
	{
		who: []string{"./pkg/slb/observe"}, must: []string{"./pkg/slb/build", "./pkg/slb/diff", "./pkg/slb/deploy"},
		why: "reading the cloud must not depend on what is wanted: an answer proves only what it says",
	},
	{
		who: []string{"./pkg/slb/deploy"}, must: []string{"./pkg/slb/build", "./pkg/slb/diff", "./pkg/slb/observe"},
		why: "a plan is data: whoever carries it out neither decides nor reads",
	},
	{
		who: []string{"./pkg/slb/build"}, must: []string{"./pkg/slb/diff"},
		why: "what is wanted does not depend on how it is reached",
	},
	{
		who: []string{"./pkg/slb"}, must: []string{"./pkg/nlb", "./pkg/vpcroute", "./pkg/node", "./pkg/provider", "./pkg/initor"}, tests: true,
		why: "features do not know each other: what one needs of another is a function that pkg/provider hands in",
	},
	{
		who:   []string{"./pkg/vpcroute"},
		must:  []string{"./pkg/slb", "./pkg/nlb", "./pkg/service", "./pkg/doctor", "./pkg/node", "./pkg/provider", "./pkg/initor"},
		tests: true,
		why:   "features do not know each other: what one needs of another is a function that pkg/provider hands in",
	},
	{
		who:   []string{"./pkg/node"},
		must:  []string{"./pkg/slb", "./pkg/nlb", "./pkg/service", "./pkg/doctor", "./pkg/vpcroute", "./pkg/provider", "./pkg/initor"},
		tests: true,
		why:   "features do not know each other: what one needs of another is a function that pkg/provider hands in",
	},
	{
		who: []string{"./pkg/initor"}, must: []string{"."},
		but: []string{"./pkg/node", "./pkg/alicloud", "./pkg/initor", "./internal/nodes", "./internal/waits"},
		why: "the initializer is small: provider IDs, the cloud, what Node objects say, and no controller",
	},
	{
		who: []string{"./internal/nodes"}, must: []string{".", "k8s.io"},
		but: []string{"./internal/nodes", "k8s.io/api", "k8s.io/apimachinery", "k8s.io/cloud-provider/api"}, tests: true,
		why: "what a Node object says depends on that object alone: no client, no cloud, no feature",
	},
	{
		who: []string{"./internal/events"}, must: []string{"."}, but: []string{"./internal/events"}, tests: true,
		why: "every feature emits events through it, so it knows none of them",
	},
	{
		who: []string{"./internal/workers"}, must: []string{"."}, but: []string{"./internal/workers"}, tests: true,
		why: "every feature has queues, so what works them off knows no feature",
	},
	{
		who: []string{"./pkg/rights"}, must: []string{".", "k8s.io"}, tests: true,
		why: "every part declares its permissions in this form, so the form knows no part",
	},
	{
		who: []string{"./internal/absence", "./internal/instruments", "./internal/leadership", "./internal/healthport", "./internal/sleep"}, must: []string{"."},
		but: []string{"./internal/sleep"}, tests: true,
		why: "features and programs are built on these, so they know none of them",
	},
	{
		who: []string{"./pkg/doctor"}, must: []string{"."}, but: []string{"./pkg/doctor", "./pkg/alicloud", "./pkg/initor", "./pkg/rights"},
		why: "a diagnosis must work where controllers cannot start: it reads, and runs no feature",
	},
	{
		who: []string{"./pkg", "./internal", "./deploy"}, must: []string{"./cmd", "k8s.io/cloud-provider/app"},
		why: "only the commands build the manager, so that everything else can be linked into somebody else's",
	},
	{
		except: []string{"./cmd/alicloud-emulator", "./internal/emulator", "./internal/testkit", "./pkg/emulated"},
		must:   []string{"./internal/emulator", "./pkg/emulated"},
		why:    "the product must not contain its test double",
	},
	{
		except: []string{"./internal/golden", "./internal/selfexec", "./internal/testkit", "./internal/emulator/emulatortest",
			"./pkg/emulated"},
		must: []string{"testing", "./internal/golden", "./internal/selfexec", "./internal/testkit",
			"./internal/emulator/emulatortest"},
		why: "what only tests need would bring the package testing and its flags into the programs",
	},
	{
		who: []string{"./internal/testkit"}, must: []string{"./pkg", "./cmd"}, but: []string{"./pkg/alicloud"},
		why: "every package's own tests use it: a helper that knows a package would be an import cycle in that package's tests",
	},
	{
		who: []string{"./pkg/emulated"}, must: []string{".", "k8s.io"}, but: []string{"./pkg/emulated", "./internal/emulator"}, tests: true,
		why: "other projects test with it: they want the emulator, and nothing of the manager",
	},
	{
		who: []string{"./internal/emulator"}, must: []string{"./pkg"},
		why: "the emulator is written against the cloud's documents: with code of the client it would share its mistakes",
	},
	{
		must: []string{"./sandbox", "k8s.io/kubernetes"}, tests: true,
		why: "the sandbox is a module of its own, so that users of the product do not get k8s.io/kubernetes",
	},
}

// goPackage is a package with the imports of its files and of its tests.
type goPackage struct {
	ImportPath           string
	Imports, TestImports []string
}

func TestImports(t *testing.T) {
	t.Parallel()
	for _, p := range listPackages(t) {
		for _, r := range rules {
			for _, imported := range r.broken(p) {
				t.Errorf("%s imports %s: %s", p.ImportPath, imported, r.why)
			}
		}
	}
}

func TestRulesBindSomething(t *testing.T) {
	t.Parallel()
	packages := listPackages(t)
	for _, r := range rules {
		for _, path := range slices.Concat(r.who, r.except) {
			exists := false
			for _, p := range packages {
				exists = exists || below(p.ImportPath, []string{path})
			}
			if !exists {
				t.Errorf("a rule names %s, which does not exist: a rule about nothing is never broken", path)
			}
		}
		for _, path := range slices.Concat(r.must, r.but) {
			if local, ok := strings.CutPrefix(path, "."); ok {
				if info, err := os.Stat(filepath.Join("..", "..", local)); err != nil || !info.IsDir() {
					t.Errorf("a rule forbids or allows %s, which does not exist: nobody imports that", path)
				}
			}
		}
	}
}

func TestRuleCanBeBroken(t *testing.T) {
	t.Parallel()
	r := rule{who: []string{"./pkg/a"}, must: []string{"./pkg"}, but: []string{"./pkg/c"}}
	p := goPackage{
		ImportPath:  module + "/pkg/a/b",
		Imports:     []string{"fmt", module + "/pkg/c", module + "/pkg/d", module + "/pkgs"},
		TestImports: []string{module + "/pkg/e"},
	}
	if got := r.broken(p); len(got) != 1 || got[0] != module+"/pkg/d" {
		t.Errorf("broken by %q, want only %s/pkg/d", got, module)
	}
	r.tests = true
	if got := r.broken(p); len(got) != 2 {
		t.Errorf("with tests broken by %q, want two", got)
	}
}

// broken returns the imports of p that the rule forbids.
func (r rule) broken(p goPackage) []string {
	if (len(r.who) > 0 && !below(p.ImportPath, r.who)) || below(p.ImportPath, r.except) {
		return nil
	}
	imports := p.Imports
	if r.tests {
		imports = slices.Concat(p.Imports, p.TestImports)
	}
	var broken []string
	for _, imported := range imports {
		if below(imported, r.must) && !below(imported, r.but) {
			broken = append(broken, imported)
		}
	}
	return broken
}

// below says whether path is one of roots or lies below one.
func below(path string, roots []string) bool {
	for _, root := range roots {
		if local, ok := strings.CutPrefix(root, "."); ok {
			root = module + local
		}
		if path == root || strings.HasPrefix(path, root+"/") {
			return true
		}
	}
	return false
}

// listPackages reads the imports of every package of the module. It opens the files itself rather than ask `go list`,
// because Go's test cache notices only files that the test opens.
func listPackages(t *testing.T) []goPackage {
	t.Helper()
	root := filepath.Join("..", "..")
	packages := map[string]*goPackage{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			return skipForeign(root, path, entry)
		case !strings.HasSuffix(path, ".go"):
			return nil
		}
		directory, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		importPath := module + "/" + filepath.ToSlash(directory)
		if packages[importPath] == nil {
			packages[importPath] = &goPackage{ImportPath: importPath}
		}
		return packages[importPath].add(path)
	})
	if err != nil {
		t.Fatalf("read the module: %v", err)
	}
	var list []goPackage
	for _, p := range packages {
		list = append(list, *p)
	}
	return list
}

// skipForeign leaves out directories that are no part of the module's packages.
func skipForeign(root, path string, entry fs.DirEntry) error {
	if path == root {
		return nil
	}
	_, err := os.Stat(filepath.Join(path, "go.mod"))
	if err == nil || entry.Name() == "testdata" || strings.HasPrefix(entry.Name(), ".") {
		return filepath.SkipDir
	}
	return nil
}

// add notes the imports of one file.
func (p *goPackage) add(path string) error {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
	if err != nil {
		return err
	}
	for _, spec := range file.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return err
		}
		if strings.HasSuffix(path, "_test.go") {
			p.TestImports = append(p.TestImports, imported)
		} else {
			p.Imports = append(p.Imports, imported)
		}
	}
	return nil
}
