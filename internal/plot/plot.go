package plot

import (
	"fmt"
	"html"
	"math"
	"strconv"
	"strings"
)

// Chart is a line chart with logarithmic axes, unless they are linear.
type Chart struct {
	Title  string
	Linear bool
	// X and Y say what the axes show, with the unit.
	X, Y string
	// XTicks and YTicks are the values with a line of the grid, in ascending order. The first and the last bound the chart.
	XTicks, YTicks []float64
	Lines          []Line
}

// Line is one line of a chart.
type Line struct {
	Name   string
	Points []Point
	// Dashed marks a line that shows a bound, not a measurement. Loose has each point marked, without a line that joins them.
	Dashed, Loose bool
}

// Point is a point of a line. In a [Chart] with logarithmic axes, both values are above 0.
type Point struct {
	X float64 `json:"x"`
	Y float64 `json:"y"`
}

// Size of a chart and its margins, in pixels.
const (
	width, height                         = 720, 420
	left, right, top, bottom              = 64, 24, 44, 84
	legendTop, legendStep, swatch, labels = 388, 214, 22, 6
	legendRow, perRow                     = 20, 3
	radius                                = 5
)

// palette has colors that most color-blind readers can distinguish, on a light and a dark background: Okabe and Ito,
// https://jfly.uni-koeln.de/color/.
var palette = []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"}

// style follows the theme of the reader. The background is part of the picture: a page may have another theme.
const style = `.back{fill:#fff}text{font:12px system-ui,sans-serif;fill:#333}.title{font-size:15px;font-weight:600}.grid{stroke:#ccc}` +
	`@media (prefers-color-scheme: dark){.back{fill:#12171e}text{fill:#ddd}.grid{stroke:#555}}`

// SVG returns the chart as a document of its own.
func (c Chart) SVG() string {
	var b strings.Builder
	high := height + max(0, (len(c.Lines)-1)/perRow)*legendRow
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" aria-label="%s">`+"\n<style>%s</style>\n", width,
		high, html.EscapeString(c.Title), style)
	fmt.Fprintf(&b, "<rect class=\"back\" width=\"%d\" height=\"%d\"/>\n", width, high)
	text(&b, left, top-labels*3, "start", "title", c.Title)
	for _, x := range c.XTicks {
		at := c.x(x)
		fmt.Fprintf(&b, "<path class=\"grid\" d=\"M%.1f %dV%d\"/>\n", at, top, height-bottom)
		text(&b, at, height-bottom+labels*3, "middle", "", number(x))
	}
	for _, y := range c.YTicks {
		at := c.y(y)
		fmt.Fprintf(&b, "<path class=\"grid\" d=\"M%d %.1fH%d\"/>\n", left, at, width-right)
		text(&b, left-labels, at+labels, "end", "", number(y))
	}
	text(&b, (left+width-right)/2, height-bottom+labels*6, "middle", "", c.X)
	fmt.Fprintf(&b, "<g transform=\"rotate(-90 16 %d)\">", (top+height-bottom)/2)
	text(&b, 16, (top+height-bottom)/2, "middle", "", c.Y)
	b.WriteString("</g>\n")
	for i, line := range c.Lines {
		c.draw(&b, i, line)
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// draw draws a line, and its name in the legend.
func (c Chart) draw(b *strings.Builder, i int, line Line) {
	stroke := fmt.Sprintf(`fill="none" stroke="%s" stroke-width="2"`, palette[i%len(palette)])
	if line.Dashed {
		stroke += ` stroke-dasharray="6 4"`
	}
	at, under := left+i%perRow*legendStep, legendTop+swatch+i/perRow*legendRow
	if line.Loose {
		for _, p := range line.Points {
			circle(b, stroke, c.x(p.X), c.y(p.Y))
		}
		circle(b, stroke, float64(at+swatch/2), float64(under))
	} else {
		points := make([]string, 0, len(line.Points))
		for _, p := range line.Points {
			points = append(points, fmt.Sprintf("%.1f,%.1f", c.x(p.X), c.y(p.Y)))
		}
		fmt.Fprintf(b, "<polyline %s points=\"%s\"/>\n", stroke, strings.Join(points, " "))
		fmt.Fprintf(b, "<path %s d=\"M%d %dh%d\"/>\n", stroke, at, under, swatch)
	}
	text(b, at+swatch+labels, under+labels-2, "start", "", line.Name)
}

func circle(b *strings.Builder, stroke string, x, y float64) {
	fmt.Fprintf(b, "<circle %s cx=\"%.1f\" cy=\"%.1f\" r=\"%d\"/>\n", stroke, x, y, radius)
}

func text[X, Y int | float64](b *strings.Builder, x X, y Y, anchor, class, content string) {
	fmt.Fprintf(b, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\"", float64(x), float64(y), anchor)
	if class != "" {
		fmt.Fprintf(b, " class=\"%s\"", class)
	}
	fmt.Fprintf(b, ">%s</text>\n", html.EscapeString(content))
}

// x and y are where a value is drawn. One outside of the bounds is drawn on them.
func (c Chart) x(value float64) float64 {
	return left + c.share(value, c.XTicks)*(width-left-right)
}

func (c Chart) y(value float64) float64 {
	return height - bottom - c.share(value, c.YTicks)*(height-top-bottom)
}

// share is how far from the first to the last tick a value is.
func (c Chart) share(value float64, ticks []float64) float64 {
	first, last := ticks[0], ticks[len(ticks)-1]
	if !c.Linear {
		value, first, last = math.Log(value), math.Log(first), math.Log(last)
	}
	return min(max((value-first)/(last-first), 0), 1)
}

// number writes a value with a comma between thousands.
func number(value float64) string {
	text := strconv.FormatFloat(value, 'f', -1, 64)
	if value >= 1000 {
		text = text[:len(text)-3] + "," + text[len(text)-3:]
	}
	return text
}
