package reference

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/facts"
)

// Dependents are who depends on facts: tests, by fact and package.
type Dependents struct {
	Tests facts.Coverage
	// Measured are the facts that recordings of real accounts confirm, with date and region.
	Measured map[string]string
	// Flips say which tests fail where a fact is false.
	Flips map[string]facts.Flip
}

// Facts writes the tables of facts: how many there are, then each by its state, but for what the vendor's pages say, on which everybody can
// rely. answers are those about the fields of answers.
func Facts(w io.Writer, all, answers []facts.Fact, d Dependents) error {
	b := &strings.Builder{}
	byState := map[facts.State][]facts.Fact{}
	for _, f := range all {
		if where, ok := d.Measured[f.ID]; ok {
			f.Source = facts.Source{State: facts.Measured, Where: where}
		}
		byState[f.Source.State] = append(byState[f.Source.State], f)
	}
	counts(b, byState, answers)
	for _, state := range facts.States() {
		if len(byState[state]) > 0 && state != facts.Documented {
			section(b, state, byState[state], d)
		}
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("write the facts: %w", err)
	}
	return nil
}

// counts writes how many facts of each product are in each state.
func counts(b *strings.Builder, byState map[facts.State][]facts.Fact, answers []facts.Fact) {
	products := map[string]bool{}
	for _, all := range byState {
		for _, f := range all {
			products[f.Product] = true
		}
	}
	b.WriteString("| product |")
	for _, state := range facts.States() {
		fmt.Fprintf(b, " %s |", state)
	}
	b.WriteString(" answers |\n| --- |" + strings.Repeat(" --- |", len(facts.States())+1) + "\n")
	for _, product := range append(slices.Sorted(maps.Keys(products)), "") {
		number := func(all []facts.Fact) int {
			return len(slices.DeleteFunc(slices.Clone(all), func(f facts.Fact) bool { return product != "" && f.Product != product }))
		}
		name := product
		if name == "" {
			name = "**all**"
		}
		fmt.Fprintf(b, "| %s |", name)
		for _, state := range facts.States() {
			fmt.Fprintf(b, " %d |", number(byState[state]))
		}
		fmt.Fprintf(b, " %d |\n", number(answers))
	}
}

var headings = map[facts.State]string{
	facts.Measured: "Measured", facts.FromCode: "From code", facts.Assumed: "Assumed",
}

func section(b *strings.Builder, state facts.State, all []facts.Fact, d Dependents) {
	columns := []string{"fact", "how the cloud behaves", "source", "checked by"}
	if state == facts.Assumed {
		columns = append(columns, "if it is false")
	}
	fmt.Fprintf(b, "\n### %s\n\n| %s |\n|%s\n", headings[state], strings.Join(columns, " | "), strings.Repeat(" --- |", len(columns)))
	for i := range all {
		f := &all[i]
		cells := []string{"`" + f.ID + "`", statement(f), source(f.Source), check(f)}
		if state == facts.Assumed {
			cells = append(cells, flipped(f, d))
		}
		fmt.Fprintf(b, "| %s |\n", strings.Join(cells, " | "))
	}
}

// flipped says what make flips has found out.
func flipped(f *facts.Fact, d Dependents) string {
	flip, ran := d.Flips[f.ID]
	met := false
	for name := range d.Tests[f.ID] {
		met = met || strings.HasPrefix(name, "pkg/")
	}
	switch {
	case !f.Flippable():
		return "the setting `" + f.Setting + "` has the value"
	case !ran && met:
		return "not run"
	case !ran: // no test of the manager meets it
		return ""
	}
	failures := 0
	for _, failed := range flip.Failed {
		failures += len(failed)
	}
	text := fmt.Sprintf("%d of %d tests fail", failures, flip.Ran)
	if flip.Note != "" {
		text += ". " + flip.Note
	}
	return text
}

func statement(f *facts.Fact) string {
	switch {
	case f.Code == "":
		return f.Statement
	case f.ID == f.Product+"."+f.Code:
		return fmt.Sprintf("%d: %s", f.Status, f.Statement)
	}
	return fmt.Sprintf("%d `%s`: %s", f.Status, f.Code, f.Statement)
}

func source(s facts.Source) string {
	switch {
	case strings.Contains(s.Where, "https://"):
		text, url, _ := strings.Cut(s.Where, "https://")
		if text = strings.TrimSuffix(text, ", "); text == "" {
			text = "page"
		}
		return "[" + text + "](https://" + url + ")"
	case strings.HasPrefix(s.Where, "github.com/"):
		return "`" + s.Where + "`"
	}
	return s.Where
}

func check(f *facts.Fact) string {
	if f.Check == facts.Calls {
		return "calls"
	}
	if test := f.ShownBy(); test != "" {
		return fmt.Sprintf("%s (%s)", f.Check, test)
	}
	return string(f.Check)
}
