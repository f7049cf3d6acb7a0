package reference_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/emulatortest"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/facts"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/golden"
)

const flipsFile = "../facts/flips.json"

// make flips sets these: a directory that tests wrote the facts into that they met, and which facts to flip.
var (
	met      = flag.String("met", "", "flip assumed facts, and run the tests that met them according to this directory")
	flipping = flag.String("flipping", "", "regular expression of the facts to flip; empty: those that flips.json does not have")
)

// TestFlips runs the tests of the product that met a fact while that is false, and writes which of them fail. It takes hours for all facts,
// so that it writes after each.
func TestFlips(t *testing.T) { //nolint:paralleltest // it runs alone, for hours
	if *met == "" {
		t.Skip("make flips runs this")
	}
	chosen, err := regexp.Compile(*flipping)
	if err != nil {
		t.Fatal(err)
	}
	meeting := meetingTests(t, *met)
	flips, err := facts.ReadFlips(flipsFile)
	if err != nil {
		t.Fatal(err)
	}
	program := testPrograms(t)
	for _, f := range facts.All() {
		_, done := flips[f.ID]
		if f.Source.State != facts.Assumed || !f.Flippable() || len(meeting[f.ID]) == 0 || !chosen.MatchString(f.ID) || *flipping == "" && done {
			continue
		}
		begun := time.Now()
		flip := facts.Flip{Note: flips[f.ID].Note, Failed: map[string][]string{}}
		for _, name := range slices.Sorted(maps.Keys(meeting[f.ID])) {
			tests := meeting[f.ID][name]
			flip.Ran += len(tests)
			if failed := failing(t, program(name), filepath.Join(root, name), f.Switch(), tests); len(failed) > 0 {
				flip.Failed[name] = failed
			}
		}
		flips[f.ID] = flip
		t.Logf("%s: %d tests, failed %v, %s", f.ID, flip.Ran, flip.Failed, time.Since(begun).Round(time.Second))
		data, err := json.MarshalIndent(flips, "", " ")
		if err == nil {
			err = os.WriteFile(flipsFile, append(data, '\n'), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// meetingTests are the tests of the product that met each fact, by fact and package.
func meetingTests(t *testing.T, dir string) facts.Coverage {
	t.Helper()
	all, err := facts.MergeAll(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, packages := range all {
		maps.DeleteFunc(packages, func(name string, _ []string) bool { return !isProduct(name) })
	}
	return all
}

// testPrograms builds the tests of a package when they are asked for: each takes a minute, and one fact needs few of them.
func testPrograms(t *testing.T) func(name string) string {
	t.Helper()
	programs, dir := map[string]string{}, t.TempDir()
	return func(name string) string {
		if programs[name] != "" {
			return programs[name]
		}
		program := filepath.Join(dir, strings.ReplaceAll(name, "/", "-"))
		cmd := exec.CommandContext(t.Context(), "go", "test", "-c", "-o", program, "./"+name)
		cmd.Dir = root
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("build the tests of %s: %v\n%s", name, err, out)
		}
		programs[name] = program
		return program
	}
}

// verdict is a test that failed, or that a panic or the time limit ended.
var verdict = regexp.MustCompile(`(?m)^(?:--- FAIL: |panic: .*running tests:\s+|\s+)(Test\w+)(?: \(|$)`)

// failing runs tests with settings of all emulators, and returns those that fail. Where a panic or the time limit has ended the program
// before the others were through, "the others" did not run.
func failing(t *testing.T, program, dir, settings string, tests []string) []string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, "-test.run", "^("+strings.Join(tests, "|")+")$", "-test.timeout", "30m")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), emulatortest.FlipSettings+"="+settings)
	out, err := cmd.CombinedOutput()
	if err == nil {
		return nil
	}
	failed := map[string]bool{}
	for _, match := range verdict.FindAllStringSubmatch(string(out), -1) {
		if slices.Contains(tests, match[1]) {
			failed[match[1]] = true
		}
	}
	if strings.Contains(string(out), "panic: ") || len(failed) == 0 {
		failed[fmt.Sprintf("ended early: %v", err)] = true
	}
	if log := os.Getenv("FLIPS_LOG"); log != "" {
		name := filepath.Join(log, strings.NewReplacer("/", "-", `"`, "", "{", "", "}", "", ":", "-").Replace(settings+"-"+filepath.Base(dir)))
		if err := os.WriteFile(name, out, 0o600); err != nil {
			t.Error(err)
		}
	}
	return slices.Sorted(maps.Keys(failed))
}

// TestFlipsAreFresh: the facts and tests of the file exist; with -update, those that do not are left out.
func TestFlipsAreFresh(t *testing.T) {
	t.Parallel()
	flips, err := facts.ReadFlips(flipsFile)
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]map[string]bool{}
	for id, flip := range flips {
		if _, ok := facts.Get(id); !ok {
			delete(flips, id)
		}
		for name, failed := range flip.Failed {
			if tests[name] == nil {
				tests[name] = testsOf(t, filepath.Join(root, name))
			}
			flip.Failed[name] = slices.DeleteFunc(failed, func(test string) bool { return strings.HasPrefix(test, "Test") && !tests[name][test] })
		}
	}
	data, err := json.MarshalIndent(flips, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	golden.Fresh(t, flipsFile, string(data)+"\n")
}

// namedTest is a test that a note names.
var namedTest = regexp.MustCompile(`\bTest[A-Z]\w+`)

// TestFlipsAreJudged: an assumed fact that tests of the manager meet was flipped, and a note says what its being false means for a cluster.
// Where no test fails, the note names a test that sees both sides: otherwise nobody knows whether the manager depends on the fact.
func TestFlipsAreJudged(t *testing.T) {
	t.Parallel()
	flips, err := facts.ReadFlips(flipsFile)
	if err != nil {
		t.Fatal(err)
	}
	coverage, err := facts.ReadCoverage(coverageFile)
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, tests := range coverage {
		for _, name := range productPackages(tests) {
			known[name] = true
		}
	}
	exists := map[string]bool{}
	for name := range known {
		maps.Copy(exists, testsOf(t, filepath.Join(root, name)))
	}
	for _, f := range facts.All() {
		packages := productPackages(coverage[f.ID])
		if f.Source.State != facts.Assumed || !f.Flippable() || len(packages) == 0 {
			continue
		}
		flip, ran := flips[f.ID]
		switch {
		case !ran:
			t.Errorf("%s was never flipped: make flips FLIP='^%s' TESTS='./%s'", f.ID, f.ID, strings.Join(packages, " ./"))
		case flip.Note == "":
			t.Errorf("%s has no note in %s: what does it mean for a cluster if the fact is false?", f.ID, flipsFile)
		case len(flip.Failed) == 0 && !slices.ContainsFunc(namedTest.FindAllString(flip.Note, -1), func(test string) bool {
			return exists[test]
		}):
			t.Errorf("no test fails while %s is false, and its note names no test of the manager that sees both sides: %q", f.ID, flip.Note)
		}
	}
}

// productPackages are the packages of the manager among those of a fact.
func productPackages(tests map[string][]string) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(tests)), func(name string) bool { return !isProduct(name) })
}

// isProduct reports whether a package is one of the manager: pkg/emulated tests the emulator.
func isProduct(name string) bool { return strings.HasPrefix(name, "pkg/") && name != "pkg/emulated" }
