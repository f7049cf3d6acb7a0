package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/initor"
)

// page documents the exit codes: a table for the commands of a workstation, and one for init.
const page = "../../docs/reference/provider-initor.md"

// helpCode is an exit code in a command's help.
var helpCode = regexp.MustCompile(`(?m)^  (\d)  `)

func TestExitCodesAreDocumented(t *testing.T) {
	t.Parallel()
	want := map[string][]string{
		"init": helpCodes(long), "run": helpCodes(runLong), "status": helpCodes(statusLong), "check": helpCodes(checkLong),
		// Its help names none but those of success and failure.
		"manifest": {"0", "1"},
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]string{}
	var commands []string // of the table's columns after the first
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range cells {
			cells[i] = strings.Trim(cells[i], " `")
		}
		switch {
		case cells[0] == "exit code" && cells[1] == "last line":
			commands = []string{"init"}
		case cells[0] == "exit code":
			commands = cells[1:]
		case !strings.HasPrefix(line, "|"):
			commands = nil
		case cells[0] >= "0" && cells[0] <= "9":
			for i, command := range commands {
				if cells[i+1] != "" && !slices.Contains(got[command], cells[0]) {
					got[command] = append(got[command], cells[0])
				}
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("exit codes in the help and in %s (-help +page):\n%s", page, diff)
	}
}

func TestHelpNamesEveryExitCode(t *testing.T) {
	t.Parallel()
	all := slices.Concat(helpCodes(long), helpCodes(runLong), helpCodes(statusLong), helpCodes(checkLong))
	slices.Sort(all)
	var want []string
	for _, code := range []int{initor.ExitOK, initor.ExitFailed, initor.ExitConflict, initor.ExitUnidentified, initor.ExitNodes} {
		want = append(want, string(rune('0'+code)))
	}
	if diff := cmp.Diff(want, slices.Compact(all)); diff != "" {
		t.Errorf("exit codes of the code and of the help (-code +help):\n%s", diff)
	}
}

func helpCodes(text string) []string {
	var codes []string
	for _, match := range helpCode.FindAllStringSubmatch(text, -1) {
		codes = append(codes, match[1])
	}
	return codes
}
