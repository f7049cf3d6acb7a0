package facts

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// Met is what one test met: a line of the files that make facts merges.
type Met struct {
	Package string   `json:"package"`
	Test    string   `json:"test"`
	Facts   []string `json:"facts"`
}

// Coverage holds the tests that met each fact, by fact and package.
type Coverage map[string]map[string][]string

// perPackage is how many tests of a package are named for one fact; more would make a long file that changes with every test.
const perPackage = 3

// byChance are tests in which goroutines race, or a random order of events decides: what they meet differs from one run to the next, so
// that the merged file does not name them.
var byChance = map[string]bool{
	"pkg/nlb TestTwoLeaders":                      true,
	"pkg/provider TestSoakOfBothProducts":         true,
	"pkg/slb TestMoreServicesThanAnInstanceTakes": true,
	"pkg/vpcroute TestStockController":            true,
}

// ByChance lists those tests, each as the path of its package, a space and its name.
func ByChance() []string { return slices.Sorted(maps.Keys(byChance)) }

// Merge reads what tests have written into a directory, adds it to what is known, which may be nil, and keeps some tests of each package.
func Merge(dir string, known Coverage) (Coverage, error) {
	c, err := MergeAll(dir)
	for fact, packages := range known {
		if c[fact] == nil {
			c[fact] = map[string][]string{}
		}
		for name, tests := range packages {
			c[fact][name] = append(c[fact][name], tests...)
		}
	}
	for fact, packages := range c {
		for name, tests := range packages {
			tests = slices.DeleteFunc(tests, func(test string) bool { return byChance[name+" "+test] })
			slices.Sort(tests)
			tests = slices.Compact(tests)
			packages[name] = tests[:min(len(tests), perPackage)]
			if len(tests) == 0 {
				delete(packages, name)
			}
		}
		if len(packages) == 0 {
			delete(c, fact)
		}
	}
	return c, err
}

// MergeAll reads what tests have written into a directory.
func MergeAll(dir string) (Coverage, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil {
		return nil, fmt.Errorf("find what tests met: %w", err)
	}
	all := map[string]map[string]map[string]bool{}
	for _, path := range files {
		if err := read(path, all); err != nil {
			return nil, err
		}
	}
	c := Coverage{}
	for fact, packages := range all {
		c[fact] = map[string][]string{}
		for name, tests := range packages {
			c[fact][name] = slices.Sorted(maps.Keys(tests))
		}
	}
	return c, nil
}

func read(path string, all map[string]map[string]map[string]bool) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("read what tests met: %w", err)
	}
	defer f.Close()
	lines := bufio.NewReader(f)
	for {
		text, err := lines.ReadBytes('\n')
		if err == io.EOF { //nolint:errorlint // bufio returns it as it is
			return nil
		}
		var m Met
		if err == nil {
			err = json.Unmarshal(text, &m)
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", path, err)
		}
		for _, fact := range m.Facts {
			if all[fact] == nil {
				all[fact] = map[string]map[string]bool{}
			}
			if all[fact][m.Package] == nil {
				all[fact][m.Package] = map[string]bool{}
			}
			all[fact][m.Package][m.Test] = true
		}
	}
}

// ReadCoverage reads a merged file.
func ReadCoverage(path string) (Coverage, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the coverage of facts: %w", err)
	}
	var c Coverage
	if err := json.Unmarshal(data, &c); err != nil {
		return nil, fmt.Errorf("read the coverage of facts: %w", err)
	}
	return c, nil
}
