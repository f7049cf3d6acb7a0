package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// States of a spec, as Ginkgo calls them. Everything else, such as timedout, is failed here.
const (
	passed  = "passed"
	failed  = "failed"
	skipped = "skipped"
)

// result is what became of a spec.
type result struct {
	spec

	state   string
	message string
	took    time.Duration
	// log is the file with what the spec has printed.
	log string
}

// unexpected says what is wrong with a result, and whether that is an error: a spec that has begun to pass is only reported.
func (r result) unexpected() (note string, bad bool) {
	switch {
	case r.state == r.want():
		return "", false
	case r.want() == passed:
		return "should pass", true
	case r.state == passed:
		return "passes now: take its reason out of specs.go", false
	default:
		return "should be " + r.want(), true
	}
}

// printResults prints a line for each spec. The error names those that are worse than is known.
func printResults(to io.Writer, results []result) error {
	var bad []string
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "RESULT\tTIME\tSPEC\tNOTE")
	for _, r := range results {
		note, isBad := r.unexpected()
		if isBad {
			bad = append(bad, fmt.Sprintf("%s\n    %s\n    see %s", r.name, firstLine(r.message), r.log))
		}
		if note == "" {
			note = r.why
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", r.state, r.took.Round(time.Second), r.name, note)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if len(bad) > 0 {
		return fmt.Errorf("%d of %d specs did not end as expected:\n  %s", len(bad), len(results), strings.Join(bad, "\n  "))
	}
	return nil
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}

// compare reports specs that the program has and the table has not, and the other way round: a new version of Kubernetes has others.
func compare(table []spec, names map[string]string) error {
	var errs []error
	known := map[string]bool{}
	for _, s := range table {
		known[s.name] = true
		if names[s.name] == "" {
			errs = append(errs, fmt.Errorf("Kubernetes has no spec %q any more: take it out of specs.go", s.name))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if !known[name] {
			errs = append(errs, fmt.Errorf("Kubernetes has a new spec %q: add it to specs.go", name))
		}
	}
	return errors.Join(errs...)
}

// chosen are the specs whose name matches.
func chosen(table []spec, focus *regexp.Regexp) []spec {
	return slices.DeleteFunc(slices.Clone(table), func(s spec) bool { return !focus.MatchString(s.name) })
}

var tags = regexp.MustCompile(`\[[^\]]*\] ?`)

// plain is a spec's name without the tags in brackets, which say for whom it is meant.
func plain(name string) string { return strings.TrimSpace(tags.ReplaceAllString(name, "")) }

var notInFileNames = regexp.MustCompile(`[^A-Za-z0-9]+`)

// fileName is a name for the files of a spec.
func fileName(name string) string {
	return strings.Trim(notInFileNames.ReplaceAllString(name, "-"), "-")
}
