package emulator_test

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
)

// actionTable is a file to which the table of actions is written, with their parameters and the tests that call them.
var actionTable = flag.String("actions", "", "write the table of actions to this file, as Markdown")

// covered holds, by "product action", the tests that called an action with success.
var covered = struct {
	sync.Mutex
	tests map[string]map[string]bool
}{tests: map[string]map[string]bool{}}

func covers(action, test string) {
	test, _, _ = strings.Cut(test, "/")
	covered.Lock()
	defer covered.Unlock()
	if covered.tests[action] == nil {
		covered.tests[action] = map[string]bool{}
	}
	covered.tests[action][test] = true
}

func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	if code == 0 {
		if err := errors.Join(goleak.Find(), checkCoverage()); err != nil {
			fmt.Fprintln(os.Stderr, "FAIL:", err)
			code = 1
		}
	}
	os.Exit(code)
}

// checkCoverage fails when an action of the table was called by no test, unless only some tests ran.
func checkCoverage() error {
	for _, name := range []string{"test.run", "test.skip", "test.fuzz", "test.list"} {
		if flag.Lookup(name).Value.String() != "" {
			return nil
		}
	}
	e, err := emulator.New(emulator.Options{})
	if err != nil {
		return err
	}
	var missing []string
	for _, p := range e.Actions().Products() {
		for _, a := range p.Actions {
			if key := p.Name + " " + a.Name; len(covered.tests[key]) == 0 {
				missing = append(missing, key)
			}
		}
	}
	if len(missing) > 0 {
		err = fmt.Errorf("no test calls these actions with success: %v", missing)
	}
	if *actionTable != "" {
		var text strings.Builder
		writeTable(&text, e.Actions())
		err = errors.Join(err, os.WriteFile(*actionTable, []byte(text.String()), 0o600))
	}
	return errors.Join(err, e.Close())
}

func writeTable(w io.Writer, table *api.Table) {
	for _, p := range table.Products() {
		fmt.Fprintf(w, "### %s %s\n\n| Action | Kind | Parameters | Tests |\n| --- | --- | --- | --- |\n", p.Name, p.Version)
		for _, a := range p.Actions {
			var params []string
			for _, r := range a.Params {
				params = append(params, describe(r))
			}
			tests := slices.Sorted(maps.Keys(covered.tests[p.Name+" "+a.Name]))
			fmt.Fprintf(w, "| %s | %s | %s | %s |\n", a.Name, a.Kind, strings.Join(params, ", "), strings.Join(tests, ", "))
		}
		fmt.Fprintln(w)
	}
}

// describe writes a parameter's rule in a few words; required names are bold.
func describe(r api.Param) string {
	text := "`" + r.Name + "`"
	if r.Required {
		text = "**" + text + "**"
	}
	switch {
	case len(r.Enum) > 0:
		text += " " + strings.Join(r.Enum, "/")
	case r.Type == api.Int && r.Max != 0:
		text += fmt.Sprintf(" %d-%d", r.Min, r.Max)
	case r.Type != api.String:
		text += " " + string(r.Type)
	case r.Max != 0:
		text += fmt.Sprintf(" %d-%d characters", r.Min, r.Max)
	}
	if r.Type != api.Int && r.Type != api.String && r.Max != 0 {
		text += fmt.Sprintf(" of at most %d", r.Max)
	}
	return text
}
