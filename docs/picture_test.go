package docs

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"
)

// demoStep is the name of a step in the code of the demo.
var demoStep = regexp.MustCompile(`(?m)^\t\t\{"([^"]+)", \w+\},$`)

// TestPictureShowsTheDemo: the picture in the README is a run of all steps of the demo that passed, and follows the theme of the reader. After a change of the
// steps, make demo-picture draws it anew.
func TestPictureShowsTheDemo(t *testing.T) {
	t.Parallel()
	picture, err := os.ReadFile(root + "/docs/images/demo.svg")
	if err != nil {
		t.Fatal(err)
	}
	decoder := xml.NewDecoder(strings.NewReader(string(picture)))
	for {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	code, err := os.ReadFile(root + "/sandbox/demo/demo.go")
	if err != nil {
		t.Fatal(err)
	}
	steps := demoStep.FindAllStringSubmatch(string(code), -1)
	if len(steps) < 10 {
		t.Errorf("the demo has %d steps: where are the others?", len(steps))
	}
	for _, step := range steps {
		if !strings.Contains(string(picture), ">"+step[1]+" ") {
			t.Errorf("docs/images/demo.svg lacks the step %s: run make demo-picture", step[1])
		}
	}
	if !strings.Contains(string(picture), " passed</text>") || !strings.Contains(string(picture), "prefers-color-scheme: dark") {
		t.Error("docs/images/demo.svg shows no run that passed, or has one theme only")
	}
}
