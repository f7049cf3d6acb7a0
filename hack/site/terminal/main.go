// Command terminal draws what a program printed as a picture of a terminal: an SVG whose colors follow the theme of the reader. The text
// comes from standard input, and the arguments are the command that printed it.
package main

import (
	"fmt"
	"html"
	"io"
	"os"
	"strings"
	"unicode/utf8"
)

const (
	lineHeight = 18
	charWidth  = 7.23 // of the monospaced fonts below at 12 px, the widest of them
	// maxColumns keeps the picture within 830 px, the width of a README on GitHub, where a wider one would be scaled down until nobody can
	// read it.
	maxColumns = 110
	margin     = 16
	titleBar   = 30
)

func main() {
	text, err := io.ReadAll(os.Stdin)
	if err == nil {
		err = draw(os.Stdout, strings.Join(os.Args[1:], " "), string(text))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "terminal:", err)
		os.Exit(1)
	}
}

const style = `<style>
.back { fill: #fff; stroke: #c9d1dc; } .text { fill: #24292f; } .command { fill: #0b57c2; font-weight: 600; } .head { fill: #57606a; } .bar { fill: #d8dee8; }
@media (prefers-color-scheme: dark) {
.back { fill: #12171e; stroke: #323c4a; } .text { fill: #dfe6ef; } .command { fill: #79b0ff; } .head { fill: #9aa7b8; } .bar { fill: #323c4a; }
}
text { font: 12px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; white-space: pre; }
</style>`

// draw writes the picture. The first line of a text is the head of a table.
func draw(w io.Writer, command, text string) error {
	lines := append([]string{"$ " + command}, strings.Split(strings.TrimRight(text, "\n"), "\n")...)
	columns := 0
	for i, line := range lines {
		if runes := []rune(line); len(runes) > maxColumns {
			lines[i] = strings.TrimRight(string(runes[:maxColumns-1]), " ,;") + "…"
		}
		columns = max(columns, utf8.RuneCountInString(lines[i]))
	}
	width, height := int(float64(columns)*charWidth)+2*margin, len(lines)*lineHeight+titleBar+margin
	var picture strings.Builder
	fmt.Fprintf(&picture,
		`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-label="%s">`+"\n%s\n",
		width, height, width, height, html.EscapeString(command+" in a terminal"), style)
	fmt.Fprintf(&picture, `<rect class="back" x=".5" y=".5" width="%d" height="%d" rx="8"/>`+"\n", width-1, height-1)
	for i := range 3 {
		fmt.Fprintf(&picture, `<circle class="bar" cx="%d" cy="%d" r="5"/>`+"\n", margin+5+18*i, margin)
	}
	for i, line := range lines {
		class := "text"
		if i < 2 {
			class = []string{"command", "head"}[i]
		}
		fmt.Fprintf(&picture, `<text class="%s" x="%d" y="%d" xml:space="preserve">%s</text>`+"\n", class, margin, titleBar+(i+1)*lineHeight-6,
			html.EscapeString(line))
	}
	picture.WriteString("</svg>\n")
	_, err := io.WriteString(w, picture.String())
	return err
}
