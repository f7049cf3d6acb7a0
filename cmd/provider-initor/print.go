package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/initor/audit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/initor/rollout"
)

// The values of --output.
const (
	outputTable = "table"
	outputJSON  = "json"
)

func checkOutput(output string) error {
	if output != outputTable && output != outputJSON {
		return fmt.Errorf("--output is %q: %s and %s are accepted", output, outputTable, outputJSON)
	}
	return nil
}

func writeStates(w io.Writer, output string, states []rollout.NodeState) error {
	if output == outputJSON {
		return writeJSON(w, states)
	}
	rows := [][]string{{"NODE", "PROVIDER ID", "RESULT", "REASON"}}
	for _, s := range states {
		rows = append(rows, []string{s.Node, s.ProviderID, string(s.Result), s.Reason})
	}
	return writeTable(w, rows)
}

func writeVerdicts(w io.Writer, output string, verdicts []audit.NodeVerdict) error {
	if output == outputJSON {
		return writeJSON(w, verdicts)
	}
	rows := [][]string{{"NODE", "PROVIDER ID", "VERDICT", "REASON"}}
	for _, v := range verdicts {
		rows = append(rows, []string{v.Node, v.ProviderID, string(v.Verdict), v.Reason})
	}
	return writeTable(w, rows)
}

// writeJSON writes one document: {"nodes":[...]}, an empty list if there are none.
func writeJSON[T any](w io.Writer, nodes []T) error {
	if nodes == nil {
		nodes = []T{}
	}
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(map[string][]T{"nodes": nodes}); err != nil {
		return fmt.Errorf("write the result: %w", err)
	}
	return nil
}

// writeTable shows an empty cell as a dash, so that blanks separate the columns.
func writeTable(w io.Writer, rows [][]string) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		for i, cell := range row {
			end := "\t"
			if i == len(row)-1 {
				end = "\n"
			}
			if _, err := io.WriteString(table, cmp.Or(cell, "-")+end); err != nil {
				return fmt.Errorf("write the result: %w", err)
			}
		}
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("write the result: %w", err)
	}
	return nil
}
