package demo

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"text/tabwriter"
)

// seenWidth keeps the table's lines readable; the JSON document has the whole text.
const seenWidth = 110

// WriteJSON writes the report as one document. Seconds are rounded to milliseconds: more is noise.
func (r Report) WriteJSON(w io.Writer) error {
	steps := make([]Result, len(r.Steps))
	copy(steps, r.Steps)
	for i := range steps {
		steps[i].Seconds = math.Round(steps[i].Seconds*1000) / 1000
	}
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(Report{OK: r.OK, Steps: steps}); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

// WriteTable writes the report as a table with a line for each step and one for the sums.
func (r Report) WriteTable(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "STEP\tSECONDS\tREADS\tWRITES\tSEEN")
	var total Result
	for _, step := range r.Steps {
		seen := step.Seen
		if !step.OK {
			seen = "FAILED: " + seen
		}
		fmt.Fprintf(table, "%s\t%.1f\t%d\t%d\t%s\n", step.Name, step.Seconds, step.Reads, step.Writes, shorten(seen))
		total.Seconds += step.Seconds
		total.Reads += step.Reads
		total.Writes += step.Writes
	}
	outcome := "passed"
	if !r.OK {
		outcome = "failed"
	}
	fmt.Fprintf(table, "all\t%.1f\t%d\t%d\t%s\n", total.Seconds, total.Reads, total.Writes, outcome)
	if err := table.Flush(); err != nil {
		return fmt.Errorf("write the table: %w", err)
	}
	return nil
}

func shorten(text string) string {
	if runes := []rune(text); len(runes) > seenWidth {
		return string(runes[:seenWidth-1]) + "…"
	}
	return text
}
