package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"text/tabwriter"
)

// Bound says which side of its goal a figure should be on.
type Bound string

// AtMost is the side of all goals so far.
const AtMost Bound = "at most"

// Figure is one measured value.
type Figure struct {
	// Operation says what was measured, and how where that is not plain.
	Operation string  `json:"operation"`
	Value     float64 `json:"value"`
	Unit      string  `json:"unit"`
	// Goal and Bound are absent where the project has set no goal; such a figure is ok.
	Goal  *float64 `json:"goal,omitempty"`
	Bound Bound    `json:"bound,omitempty"`
	OK    bool     `json:"ok"`
}

// Report is what one run has measured, in the order of measurement.
type Report struct {
	Figures []Figure `json:"figures"`
}

func atMost(operation string, value float64, unit string, goal float64) Figure {
	return Figure{Operation: operation, Value: value, Unit: unit, Goal: &goal, Bound: AtMost, OK: value <= goal}
}

func withoutGoal(operation string, value float64, unit string) Figure {
	return Figure{Operation: operation, Value: value, Unit: unit, OK: true}
}

// WriteJSON writes the report as one document. Values are rounded to thousandths: more is noise. Whether a goal is met was decided
// before.
func (r Report) WriteJSON(w io.Writer) error {
	figures := make([]Figure, len(r.Figures))
	for i, figure := range r.Figures {
		figure.Value = math.Round(figure.Value*1000) / 1000
		figures[i] = figure
	}
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(Report{Figures: figures}); err != nil {
		return fmt.Errorf("write the figures: %w", err)
	}
	return nil
}

// WriteTable writes the report as a table with a line for each figure.
func (r Report) WriteTable(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "OPERATION\tVALUE\tUNIT\tGOAL\tMET")
	for _, f := range r.Figures {
		goal, met := "", ""
		if f.Goal != nil {
			goal, met = string(f.Bound)+" "+short(*f.Goal), "yes"
			if !f.OK {
				met = "NO"
			}
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", f.Operation, short(f.Value), f.Unit, goal, met)
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("write the table: %w", err)
	}
	return nil
}

// short writes a number with at most two digits behind the point, fewer for large ones.
func short(v float64) string {
	digits := 2
	if math.Abs(v) >= 100 {
		digits = 0
	}
	scale := math.Pow10(digits)
	return strconv.FormatFloat(math.Round(v*scale)/scale, 'f', -1, 64)
}
