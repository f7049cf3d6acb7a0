package demo

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// seenWidth keeps the table's lines readable; the progress has the whole text.
const seenWidth = 110

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
