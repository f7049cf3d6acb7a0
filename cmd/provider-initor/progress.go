package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/initor/rollout"
)

// barWidth leaves room for the figures on a narrow terminal.
const barWidth = 30

// progress shows how far a run is: a bar on a terminal, else a line for each node when it is finished. Writing errors are
// dropped, for a reader of the progress that has gone is no reason to stop.
type progress struct {
	to       io.Writer
	terminal bool
	finished map[string]bool // by node
	bar      string          // as it was drawn last
}

func newProgress(to io.Writer) *progress {
	file, ok := to.(*os.File)
	return &progress{to: to, terminal: ok && term.IsTerminal(int(file.Fd())), finished: map[string]bool{}}
}

func (p *progress) show(states []rollout.NodeState) {
	failed := 0
	for _, s := range states {
		if s.Result == rollout.ResultFailed {
			failed++
		}
		if s.Result == rollout.ResultPending || p.finished[s.Node] {
			continue
		}
		p.finished[s.Node] = true
		if !p.terminal {
			_, _ = fmt.Fprintf(p.to, "%d/%d %s: %s %s\n", len(p.finished), len(states), s.Node, s.Result, detail(s))
		}
	}
	if p.terminal {
		p.draw(len(p.finished), len(states), failed)
	}
}

// detail is what a reader wants to know first of a finished node.
func detail(s rollout.NodeState) string {
	if s.Reason != "" {
		return s.Reason
	}
	return s.ProviderID
}

func (p *progress) draw(finished, all, failed int) {
	filled := barWidth
	if all > 0 {
		filled = min(barWidth, barWidth*finished/all)
	}
	bar := fmt.Sprintf("[%s%s] %d/%d nodes, %d failed",
		strings.Repeat("#", filled), strings.Repeat(".", barWidth-filled), finished, all, failed)
	if bar != p.bar {
		_, _ = fmt.Fprintf(p.to, "\r%s", bar)
		p.bar = bar
	}
}

// end leaves the bar's line, so that what comes next has one of its own.
func (p *progress) end() {
	if p.bar != "" {
		_, _ = fmt.Fprintln(p.to)
	}
}
