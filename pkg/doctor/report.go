// Package doctor is what a check-up of an installation says: one line for each thing that was looked at, with what to do
// where it is wrong. It also holds the checks that need nothing but a client.
//
// It changes nothing, and what it cannot know it calls not checked.
package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"k8s.io/apimachinery/pkg/util/sets"
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

// The areas of checks.
const (
	AreaManager     = "manager"
	AreaServices    = "services"
	AreaNodes       = "nodes"
	AreaCloud       = "cloud"
	AreaPermissions = "permissions"
	AreaCluster     = "cluster"
	AreaQuotas      = "quotas"
)

var (
	// areas are in the order in which somebody on call asks about them.
	areas = []string{AreaManager, AreaServices, AreaNodes, AreaCloud, AreaPermissions, AreaCluster, AreaQuotas}
	// statuses are in the order in which they are printed.
	statuses = []Status{Wrong, NotChecked, Optional, OK}
)

// Check is one line of a report.
type Check struct {
	// Area groups checks, see [AreaManager].
	Area string `json:"area"`
	// Subject is what was looked at.
	Subject string `json:"subject"`
	Status  Status `json:"status"`
	// Detail says what was found.
	Detail string `json:"detail,omitempty"`
	// Fix says what to do where something is wrong, or is to be had in addition.
	Fix string `json:"fix,omitempty"`
	// Family names checks that are alike: those that pass are one line of the text together. Empty for a line of its own.
	Family string `json:"-"`
}

// Report is the result of a check-up.
type Report struct {
	Checks []Check `json:"checks"`
	// hidden is how many checks that pass were left out.
	hidden int
}

// Add appends a line.
func (r *Report) Add(checks ...Check) { r.Checks = append(r.Checks, checks...) }

// Sort puts the areas in order.
func (r *Report) Sort() {
	slices.SortStableFunc(r.Checks, func(a, b Check) int { return cmp.Compare(slices.Index(areas, a.Area), slices.Index(areas, b.Area)) })
}

// Problems returns the report without the checks that pass.
func (r Report) Problems() Report {
	found := Report{Checks: []Check{}}
	for _, c := range r.Checks {
		if c.Status == OK {
			found.hidden++
		} else {
			found.Add(c)
		}
	}
	return found
}

// Empty reports whether nothing is wrong.
func (r Report) Empty() bool {
	return !slices.ContainsFunc(r.Checks, func(c Check) bool { return c.Status == Wrong })
}

// String is the report as a table, with what is wrong first and a summary in the last line.
func (r Report) String() string {
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	if len(r.Checks) > 0 {
		fmt.Fprintln(table, "AREA\tCHECK\tRESULT\tFOUND")
	}
	count := map[Status]int{OK: r.hidden}
	for _, c := range r.Checks {
		count[c.Status]++
	}
	for _, status := range statuses {
		for _, c := range joined(r.Checks, status) {
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", c.Area, c.Subject, c.Status, c.Detail)
			if c.Fix != "" {
				fmt.Fprintf(table, "\t\t\t-> %s\n", c.Fix)
			}
		}
	}
	// The writer below never fails.
	_ = table.Flush()
	fmt.Fprintf(&text, "\n%d ok, %d wrong, %d not checked, %d optional\n", count[OK], count[Wrong], count[NotChecked], count[Optional])
	return strings.TrimPrefix(text.String(), "\n")
}

// joined returns the checks with a status, those that pass and are alike as one.
func joined(checks []Check, status Status) []Check {
	size, said, found := map[string]int{}, sets.New[string](), []Check{}
	for _, c := range checks {
		if c.Status == status {
			size[c.Area+"/"+c.Family]++
		}
	}
	for _, c := range checks {
		family := c.Area + "/" + c.Family
		switch {
		case c.Status != status || c.Family != "" && said.Has(family):
			continue
		case c.Status == OK && c.Family != "" && size[family] > 1:
			c = Check{Area: c.Area, Subject: c.Family, Status: OK, Detail: fmt.Sprintf("all %d", size[family])}
			if n := countOf(checks, family); n > size[family] {
				c.Detail = fmt.Sprintf("%d of %d", size[family], n)
			}
			said.Insert(family)
		}
		found = append(found, c)
	}
	return found
}

func countOf(checks []Check, family string) int {
	n := 0
	for _, c := range checks {
		if c.Area+"/"+c.Family == family {
			n++
		}
	}
	return n
}

// Limit returns no more than a few of checks that are alike, and one that names the others: on call, a thousand nodes that lack the same
// are one problem.
func Limit(checks []Check) []Check {
	if len(checks) <= shown+1 {
		return checks
	}
	var names []string
	for _, c := range checks[shown:] {
		names = append(names, c.Subject)
	}
	last := checks[shown]
	last.Subject, last.Detail = fmt.Sprintf("%d others", len(names)), some(names)
	return append(slices.Clone(checks[:shown]), last)
}
