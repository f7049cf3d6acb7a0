package plot

import (
	"cmp"
	"fmt"
	"html"
	"math"
	"slices"
	"strings"
)

// Board is a picture of a dashboard: panels on a grid of 24 columns, as Grafana lays them out.
type Board struct {
	Title  string
	Panels []Panel
	// End is the last X of all lines, in seconds. The first one is 0, and Step lies between two points of a line: a longer way is a gap.
	End, Step float64
}

// Panel is one panel of a board. X, Y, W and H are in cells of the grid.
type Panel struct {
	Title      string
	X, Y, W, H int
	Unit       Unit
	// Stat shows the last value of the first line as text, in place of the lines.
	Stat  bool
	Lines []Line
}

// Sizes of a board in pixels: cells of the grid, space around and in a panel, lines of text.
const (
	gridColumns                    = 24
	cellWidth, cellHeight          = 40, 25
	boardTop, gap, pad             = 40, 4, 10
	titleLine, legendLine, axisGap = 26, 15, 56
	ticksBelow                     = 18
)

// Legends of a panel: the lines with the highest values, in two columns.
const (
	legendColumns = 2
	mostLines     = 6
	longestName   = 36
)

const boardStyle = `.back{fill:#f0f2f5}.panel{fill:#fff;stroke:#d8dce2}text{font:11px system-ui,sans-serif;fill:#333}.board{font-size:16px;font-weight:600}` +
	`.title{font-size:13px;font-weight:600}.stat{font-size:30px;font-weight:600}.grid{stroke:#ddd}` +
	`@media (prefers-color-scheme: dark){.back{fill:#0d1117}.panel{fill:#161b22;stroke:#30363d}text{fill:#ddd}.grid{stroke:#30363d}}`

// SVG returns the board as a document of its own.
func (b Board) SVG() string {
	rows := 0
	for i := range b.Panels {
		rows = max(rows, b.Panels[i].Y+b.Panels[i].H)
	}
	wide, high := gridColumns*cellWidth+2*gap, boardTop+rows*cellHeight+gap
	var out strings.Builder
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" aria-label="%s">`+"\n<style>%s</style>\n", wide, high, html.EscapeString(b.Title), boardStyle)
	fmt.Fprintf(&out, "<rect class=\"back\" width=\"%d\" height=\"%d\"/>\n", wide, high)
	text(&out, pad+gap, titleLine, "start", "board", b.Title)
	for i := range b.Panels {
		b.draw(&out, &b.Panels[i])
	}
	out.WriteString("</svg>\n")
	return out.String()
}

func (b Board) draw(out *strings.Builder, p *Panel) {
	x, y := gap+p.X*cellWidth, boardTop+p.Y*cellHeight
	wide, high := p.W*cellWidth, p.H*cellHeight
	fmt.Fprintf(out, "<rect class=\"panel\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"3\"/>\n", x+gap/2, y+gap/2, wide-gap, high-gap)
	text(out, x+pad, y+titleLine-labels, "start", "title", p.Title)
	if p.Stat {
		if len(p.Lines) > 0 && len(p.Lines[0].Points) > 0 {
			points := p.Lines[0].Points
			text(out, x+wide/2, y+high/2+titleLine, "middle", "stat", p.Unit.format(points[len(points)-1].Y))
		}
		return
	}
	lines := highest(p.Lines)
	if len(lines) < len(p.Lines) {
		text(out, x+wide-pad, y+titleLine-labels, "end", "", fmt.Sprintf("the highest %d of %d", len(lines), len(p.Lines)))
	}
	legend := (len(lines) + legendColumns - 1) / legendColumns * legendLine
	inner := area{
		left: float64(x + axisGap), right: float64(x + wide - 2*pad), top: float64(y + titleLine + labels), bottom: float64(y + high - pad - legend - ticksBelow),
		end: b.End, step: b.Step, most: p.Unit.end(lines),
	}
	inner.axes(out, p.Unit)
	for i, line := range lines {
		color := palette[i%len(palette)]
		inner.line(out, line, color)
		at, under := x+pad+i%legendColumns*(wide/legendColumns), int(inner.bottom)+ticksBelow+legendLine*(i/legendColumns+1)
		fmt.Fprintf(out, "<path stroke=\"%s\" stroke-width=\"3\" d=\"M%d %dh%d\"/>\n", color, at, under-labels/2-1, swatch/2)
		text(out, at+swatch/2+labels, under, "start", "", cut(line.Name, longestName))
	}
}

// highest returns the lines that reach the highest values.
func highest(lines []Line) []Line {
	shown := slices.Clone(lines)
	slices.SortStableFunc(shown, func(a, b Line) int {
		return cmp.Or(cmp.Compare(b.highest(), a.highest()), cmp.Compare(a.Name, b.Name))
	})
	return shown[:min(len(shown), mostLines)]
}

// highest is the highest value of a line.
func (l Line) highest() float64 {
	most := math.Inf(-1)
	for _, p := range l.Points {
		most = max(most, p.Y)
	}
	return most
}

func cut(name string, most int) string {
	if runes := []rune(name); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return name
}
