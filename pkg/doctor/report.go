// Package doctor is what a check-up of an installation says: one line for each thing that was looked at, with what to do
// where it is wrong. It also holds the checks that need nothing but a client.
//
// It changes nothing, and what it cannot know it calls not checked.
package doctor

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
)

// Status is the result of one check.
type Status string

// The results.
const (
	OK    Status = "ok"
	Wrong Status = "wrong"
	// NotChecked says that it cannot be known, or that something else is in the way.
	NotChecked Status = "not checked"
	// Optional says that something is not there that only one feature needs; everything else works.
	Optional Status = "optional"
)

// Check is one line of a report.
type Check struct {
	// Area groups checks: "cloud", "permissions", "cluster", "nodes".
	Area string `json:"area"`
	// Subject is what was looked at.
	Subject string `json:"subject"`
	Status  Status `json:"status"`
	// Detail says what was found.
	Detail string `json:"detail,omitempty"`
	// Fix says what to do where something is wrong, or is to be had in addition.
	Fix string `json:"fix,omitempty"`
}

// Report is the result of a check-up.
type Report struct {
	Checks []Check `json:"checks"`
}

// Add appends a line.
func (r *Report) Add(checks ...Check) { r.Checks = append(r.Checks, checks...) }

// Empty reports whether nothing is wrong.
func (r Report) Empty() bool {
	return !slices.ContainsFunc(r.Checks, func(c Check) bool { return c.Status == Wrong })
}

// String is the report as a table, with a summary in the last line.
func (r Report) String() string {
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "AREA\tCHECK\tRESULT\tFOUND")
	count := map[Status]int{}
	for _, c := range r.Checks {
		count[c.Status]++
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", c.Area, c.Subject, c.Status, c.Detail)
		if c.Fix != "" {
			fmt.Fprintf(table, "\t\t\t-> %s\n", c.Fix)
		}
	}
	// The writer below never fails.
	_ = table.Flush()
	fmt.Fprintf(&text, "\n%d ok, %d wrong, %d not checked, %d optional\n", count[OK], count[Wrong], count[NotChecked], count[Optional])
	return text.String()
}
