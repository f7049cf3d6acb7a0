package plot

import (
	"strings"
	"testing"
)

// TestBoard: a board says what each panel shows, leaves gaps, and names the highest lines if there are many.
func TestBoard(t *testing.T) {
	t.Parallel()
	many := []Line{{Name: "none"}}
	for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
		many = append(many, Line{Name: name, Points: []Point{{0, 1}, {15, 2}, {60, 3}}})
	}
	board := Board{Title: "Calls & nodes", End: 60, Step: 15, Panels: []Panel{
		{Title: "Age", W: 12, H: 4, Unit: UnitSeconds, Stat: true, Lines: []Line{{Points: []Point{{0, 1}, {15, 90}}}}},
		{Title: "Nothing", X: 12, W: 12, H: 4, Stat: true},
		{Title: "Memory", Y: 4, W: 12, H: 8, Unit: UnitBytes, Lines: []Line{{Name: "<pod>", Points: []Point{{0, 70 << 20}}}}},
		{Title: "Many", X: 12, Y: 4, W: 12, H: 8, Unit: UnitNone, Lines: many},
	}}
	svg := board.SVG()
	mustBeXML(t, svg)
	for _, want := range []string{"Calls &amp; nodes", ">1.5 min<", ">80 MiB<", ">40 MiB<", "&lt;pod&gt;", "<circle", "the highest 6 of 7", ">1 min<"} {
		if !strings.Contains(svg, want) {
			t.Errorf("%s is not in\n%s", want, svg)
		}
	}
	if strings.Contains(svg, ">none<") || strings.Count(svg, "<polyline") != 6 || strings.Count(svg, "<circle") != 7 {
		t.Errorf("lines: want 6 with a gap before the last point\n%s", svg)
	}
}

func TestUnits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		unit  Unit
		value float64
		want  string
	}{
		{UnitNone, 0, "0"}, {UnitNone, 1500, "1500"}, {UnitNone, 0.333333, "0.333"}, {UnitNone, -2, "-2"}, {UnitSeconds, 0.0455, "45.5 ms"}, {UnitSeconds, 59, "59 s"},
		{UnitSeconds, 86400, "1 d"}, {UnitRate, 2.5, "2.5/s"}, {UnitPercent, 0.021, "2.1 %"}, {UnitBytes, 3 << 30, "3 GiB"}, {"other", 7, "7"},
	} {
		if got := c.unit.format(c.value); got != c.want {
			t.Errorf("%v %s: %q, want %q", c.value, c.unit, got, c.want)
		}
	}
	for _, c := range []struct {
		unit       Unit
		most, want float64
	}{{UnitNone, 0, 1}, {UnitNone, 100, 100}, {UnitNone, 101, 200}, {UnitSeconds, 83, 120}, {UnitBytes, 75 << 20, 80 << 20}, {UnitPercent, 0.02, 0.02}} {
		if got := c.unit.end([]Line{{Points: []Point{{0, c.most}}}}); got != c.want {
			t.Errorf("axis of %v %s ends at %v, want %v", c.most, c.unit, got, c.want)
		}
	}
}
