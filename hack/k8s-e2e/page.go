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
func page(version string, all []spec) string {
	var out strings.Builder
	fmt.Fprintf(&out, pageHead, version)
	out.WriteString("\n## Specs that pass\n\n| spec | what it shows |\n| --- | --- |\n")
	for _, s := range all {
		if s.why == "" {
			fmt.Fprintf(&out, "| %s | %s |\n", s.name, s.shows)
		}
	}
	out.WriteString("\n## Specs that cannot pass\n\n| spec | why |\n| --- | --- |\n")
	for _, s := range all {
		if s.why != "" {
			fmt.Fprintf(&out, "| %s | %s |\n", s.name, s.why)
		}
	}
	return out.String()
}
