package main

import (
	_ "embed"
	"fmt"
	"strings"
)

// pageHead is the text of the reference page before the specs.
//
//go:embed page.md
var pageHead string

// page is the reference page of the specs of a version of Kubernetes.
func page(version string, all []entry) string {
	var out strings.Builder
	fmt.Fprintf(&out, pageHead, version)
	out.WriteString("\n## Specs that pass\n\n| spec | CLB | NLB | what it shows |\n| --- | --- | --- | --- |\n")
	for _, e := range all {
		if e.shows != "" {
			fmt.Fprintf(&out, "| %s | %s | %s | %s |\n", e.name, passes(e.clb), passes(e.nlb), e.shows)
		}
	}
	out.WriteString("\n## Specs that cannot pass\n\n| spec | product | why |\n| --- | --- | --- |\n")
	// Specs that fail for one reason share a row.
	type reason struct{ product, why string }
	var reasons []reason
	names := map[reason][]string{}
	add := func(name, product, why string) {
		r := reason{product, why}
		if names[r] == nil {
			reasons = append(reasons, r)
		}
		names[r] = append(names[r], name)
	}
	for _, e := range all {
		switch {
		case e.clb == e.nlb && e.clb.why != "":
			add(e.name, "both", e.clb.why)
		case e.clb.why != "":
			add(e.name, "CLB", e.clb.why)
		case e.nlb.why != "":
			add(e.name, "NLB", e.nlb.why)
		}
	}
	for _, r := range reasons {
		fmt.Fprintf(&out, "| %s | %s | %s |\n", strings.Join(names[r], ";<br>"), r.product, r.why)
	}
	return out.String()
}

func passes(o obstacle) string {
	if o.why == "" {
		return "yes"
	}
	return "no"
}
