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
	blocked  map[string]bool // reasons that were written
	bar      string          // as it was drawn last
}

func newProgress(to io.Writer) *progress {
	file, ok := to.(*os.File)
	return &progress{to: to, terminal: ok && term.IsTerminal(int(file.Fd())), finished: map[string]bool{}, blocked: map[string]bool{}}
}

func (p *progress) show(states []rollout.NodeState) {
	p.showBlocked(states)
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

// maxBlocked is how many reasons are written: the text of a registry may have parts that differ from node to node.
const maxBlocked = 10

// showBlocked writes why pods cannot start, each reason once, while there is time to do something about it.
func (p *progress) showBlocked(states []rollout.NodeState) {
	for i, s := range states {
		if !s.Blocked || s.Result != rollout.ResultPending || p.blocked[s.Reason] || len(p.blocked) == maxBlocked {
			continue
		}
		p.blocked[s.Reason] = true
		others := ""
		if n := sharing(states[i+1:], s.Reason); n > 0 {
			others = fmt.Sprintf(" and %d more", n)
		}
		if p.bar != "" {
			_, _ = fmt.Fprint(p.to, "\r"+strings.Repeat(" ", len(p.bar))+"\r")
			p.bar = ""
		}
		_, _ = fmt.Fprintf(p.to, "waiting: the pod of %s%s cannot start: %s\n", s.Node, others, s.Reason)
	}
}

// sharing counts the nodes that wait for the same reason.
func sharing(states []rollout.NodeState, reason string) int {
	n := 0
	for _, s := range states {
		if s.Blocked && s.Reason == reason {
			n++
		}
	}
	return n
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
