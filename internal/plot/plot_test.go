package plot

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
)

// TestChart: a chart is well-formed, names what it shows, and keeps values within its bounds.
func TestChart(t *testing.T) {
	t.Parallel()
	c := Chart{
		Title: "Calls & nodes", X: "nodes", Y: "calls", XTicks: []float64{10, 100, 1000}, YTicks: []float64{1, 10, 100},
		Lines: []Line{
			{Name: "all", Points: []Point{{10, 1}, {100, 10}, {1000, 1e9}}}, {Name: "some", Dashed: true, Points: []Point{{10, 5}}},
			{Name: "measured", Loose: true, Points: []Point{{100, 10}}},
		},
	}
	svg := c.SVG()
	mustBeXML(t, svg)
	for _, want := range []string{"Calls &amp; nodes", ">1,000<", ">all<", `points="64.0,336.0 380.0,190.0 696.0,44.0"`, "stroke-dasharray",
		`cx="380.0" cy="190.0"`} {
		if !strings.Contains(svg, want) {
			t.Errorf("%s is not in\n%s", want, svg)
		}
	}
}

// TestLinearChart: values of a linear chart may be 0, and legends that fill a row go on in the next one.
func TestLinearChart(t *testing.T) {
	t.Parallel()
	c := Chart{Title: "Members", Linear: true, XTicks: []float64{0, 50, 100}, YTicks: []float64{0, 50}}
	for _, name := range []string{"a", "b", "c", "d"} {
		c.Lines = append(c.Lines, Line{Name: name, Points: []Point{{0, 0}, {50, 25}, {100, 50}}})
	}
	svg := c.SVG()
	mustBeXML(t, svg)
	for _, want := range []string{`points="64.0,336.0 380.0,190.0 696.0,44.0"`, `viewBox="0 0 720 440"`, `y="434.0" text-anchor="start">d<`} {
		if !strings.Contains(svg, want) {
			t.Errorf("%s is not in\n%s", want, svg)
		}
	}
}

func mustBeXML(t *testing.T, svg string) {
	t.Helper()
	for decoder := xml.NewDecoder(strings.NewReader(svg)); ; {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
}
