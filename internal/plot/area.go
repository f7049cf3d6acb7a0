package plot

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Unit says how the values of a panel are written. The names are those of Grafana.
type Unit string

// Units of panels.
const (
	UnitNone    Unit = "none"
	UnitSeconds Unit = "s"
	UnitRate    Unit = "ops"
	UnitPercent Unit = "percentunit"
	UnitBytes   Unit = "bytes"
)

// scale is a step between two units: values from least on are written in parts of per.
type scale struct {
	least, per float64
	suffix     string
}

var scales = map[Unit][]scale{
	UnitSeconds: {{86400, 86400, " d"}, {3600, 3600, " h"}, {60, 60, " min"}, {1, 1, " s"}, {0, 0.001, " ms"}},
	UnitRate:    {{0, 1, "/s"}},
	UnitPercent: {{0, 0.01, " %"}},
	UnitBytes:   {{1 << 30, 1 << 30, " GiB"}, {1 << 20, 1 << 20, " MiB"}, {1 << 10, 1 << 10, " KiB"}, {0, 1, " B"}},
}

// figures are the significant digits of a value.
const figures = 3

// in returns a value in the unit that suits it, and how many of the base unit that is.
func (u Unit) in(value float64) (scaled float64, by scale) {
	for _, s := range scales[u] {
		if value >= s.least {
			return value / s.per, s
		}
	}
	return value, scale{per: 1}
}

// format writes a value with its unit.
func (u Unit) format(value float64) string {
	value, by := u.in(value)
	if value == 0 {
		return "0"
	}
	digits := max(0, figures-1-int(math.Floor(math.Log10(math.Abs(value)))))
	text := strconv.FormatFloat(value, 'f', digits, 64)
	if digits > 0 {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text + by.suffix
}

// ends are those of an axis, times a power of ten: half of each is a short number, too.
var ends = []float64{1, 2, 3, 4, 5, 6, 8, 10}

// end is the upper end of an axis that begins at 0, above all lines.
func (u Unit) end(lines []Line) float64 {
	most := 0.0
	for _, line := range lines {
		most = max(most, line.highest())
	}
	if most <= 0 {
		return 1
	}
	scaled, by := u.in(most)
	power := math.Pow10(int(math.Floor(math.Log10(scaled))))
	for _, end := range ends {
		if scaled <= end*power {
			return end * power * by.per
		}
	}
	return scaled * by.per
}

// area is where the lines of a panel are drawn, in pixels. end and most are the values at its right and its upper edge.
type area struct {
	left, right, top, bottom float64
	end, step, most          float64
}

const (
	minute   = 60
	ticksOfY = 2
	dot      = 2
	// gapSteps is how many steps lie between two points with a gap in between.
	gapSteps = 1.5
)

func (a area) x(value float64) float64 { return a.left + value/a.end*(a.right-a.left) }

func (a area) y(value float64) float64 {
	return a.bottom - min(max(value/a.most, 0), 1)*(a.bottom-a.top)
}

// axes draws the lines of the grid with their values: minutes from left to right.
func (a area) axes(out *strings.Builder, unit Unit) {
	for i := range ticksOfY + 1 {
		value := a.most * float64(i) / ticksOfY
		fmt.Fprintf(out, "<path class=\"grid\" d=\"M%.1f %.1fH%.1f\"/>\n", a.left, a.y(value), a.right)
		text(out, a.left-labels, a.y(value)+labels/2+1, "end", "", unit.format(value))
	}
	for at := 0.0; at <= a.end; at += minute {
		fmt.Fprintf(out, "<path class=\"grid\" d=\"M%.1f %.1fV%.1f\"/>\n", a.x(at), a.top, a.bottom)
		text(out, a.x(at), a.bottom+ticksBelow-labels+1, "middle", "", strconv.Itoa(int(at/minute))+" min")
	}
}

// line draws each stretch without a gap, and a dot for a point alone.
func (a area) line(out *strings.Builder, line Line, color string) {
	for from := 0; from < len(line.Points); {
		to := from + 1
		for to < len(line.Points) && line.Points[to].X-line.Points[to-1].X < a.step*gapSteps {
			to++
		}
		a.stretch(out, line.Points[from:to], color)
		from = to
	}
}

func (a area) stretch(out *strings.Builder, points []Point, color string) {
	if len(points) == 1 {
		fmt.Fprintf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%d\" fill=\"%s\"/>\n", a.x(points[0].X), a.y(points[0].Y), dot, color)
		return
	}
	drawn := make([]string, 0, len(points))
	for _, p := range points {
		drawn = append(drawn, fmt.Sprintf("%.1f,%.1f", a.x(p.X), a.y(p.Y)))
	}
	fmt.Fprintf(out, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"1.5\" points=\"%s\"/>\n", color, strings.Join(drawn, " "))
}
