// Command bench turns the JSON document of `sandbox demo`, read from standard input, into the project's figures: what the
// demo took, against what it may take. It measures nothing itself.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"text/tabwriter"
)

// What the demo may take on two cores, programs built.
const (
	controlPlaneSeconds = 5
	demoSeconds         = 45
)

// report is the part of the demo's document that is used here.
type report struct {
	OK    bool `json:"ok"`
	Steps []struct {
		Name    string  `json:"name"`
		Seconds float64 `json:"seconds"`
		Reads   int     `json:"reads"`
		Writes  int     `json:"writes"`
	} `json:"steps"`
}

// figure is one measured value. Goal is absent where the project has set none; such a figure is ok.
type figure struct {
	Operation string   `json:"operation"`
	Value     float64  `json:"value"`
	Unit      string   `json:"unit"`
	Goal      *float64 `json:"goal,omitempty"`
	OK        bool     `json:"ok"`
}

func main() {
	output := flag.String("output", "table", "form of the result: table or json")
	flag.Parse()
	if err := run(os.Stdin, os.Stdout, *output); err != nil {
		fmt.Fprintf(os.Stderr, "bench: %v\n", err)
		os.Exit(1)
	}
}

func run(in io.Reader, out io.Writer, output string) error {
	write := map[string]func(io.Writer, []figure) error{"table": writeTable, "json": writeJSON}[output]
	if write == nil {
		return fmt.Errorf("--output is %q: table and json are accepted", output)
	}
	var r report
	if err := json.NewDecoder(in).Decode(&r); err != nil {
		return fmt.Errorf("read the demo's document: %w", err)
	}
	if !r.OK {
		return fmt.Errorf("the demo did not go as told, so its figures say nothing")
	}
	figures := figuresOf(r)
	if err := write(out, figures); err != nil {
		return err
	}
	for _, f := range figures {
		if !f.OK {
			return fmt.Errorf("%s: %g %s, the goal is at most %g", f.Operation, f.Value, f.Unit, *f.Goal)
		}
	}
	return nil
}

func figuresOf(r report) []figure {
	var figures []figure
	var seconds float64
	for _, step := range r.Steps {
		goal := 0.0
		if step.Name == "control plane" {
			goal = controlPlaneSeconds
		}
		seconds += step.Seconds
		figures = append(figures, newFigure(step.Name, step.Seconds, "s", goal))
		if calls := step.Reads + step.Writes; calls > 0 {
			figures = append(figures, newFigure(step.Name, float64(calls), "calls", 0))
		}
	}
	return append(figures, newFigure("demo", seconds, "s", demoSeconds))
}

// newFigure makes a figure that should be at most goal; 0 stands for no goal.
func newFigure(operation string, value float64, unit string, goal float64) figure {
	f := figure{Operation: operation, Value: math.Round(value*1000) / 1000, Unit: unit, OK: true}
	if goal > 0 {
		f.Goal, f.OK = &goal, value <= goal
	}
	return f
}

func writeJSON(out io.Writer, figures []figure) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(map[string][]figure{"figures": figures})
}

func writeTable(out io.Writer, figures []figure) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "OPERATION\tVALUE\tUNIT\tGOAL\tOK")
	for _, f := range figures {
		goal := "-"
		if f.Goal != nil {
			goal = "<= " + strconv.FormatFloat(*f.Goal, 'g', -1, 64)
		}
		fmt.Fprintf(table, "%s\t%g\t%s\t%s\t%t\n", f.Operation, f.Value, f.Unit, goal, f.OK)
	}
	return table.Flush()
}
