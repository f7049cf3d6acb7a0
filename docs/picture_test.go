package docs

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// demoStep is the name of a step in the code of the demo.
var demoStep = regexp.MustCompile(`(?m)^\t\t\{"([^"]+)", \w+\},$`)

// TestPictureShowsTheDemo: the picture in the README is a run of all steps of the demo that passed. After a change of the steps, make
// demo-picture draws it anew.
func TestPictureShowsTheDemo(t *testing.T) {
	t.Parallel()
	picture, err := os.ReadFile(root + "/docs/images/demo.svg")
	if err != nil {
		t.Fatal(err)
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
	if !strings.Contains(string(picture), " passed</text>") {
		t.Error("docs/images/demo.svg shows no run that passed")
	}
}

// TestPicturesFollowTheTheme: each drawing is well-formed, and has colors for readers with a light and with a dark theme.
func TestPicturesFollowTheTheme(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(root + "/docs/images/*.svg")
	if err != nil || len(files) == 0 {
		t.Fatal("there are no drawings", err)
	}
	for _, file := range files {
		picture, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		decoder := xml.NewDecoder(bytes.NewReader(picture))
		for err == nil {
			_, err = decoder.Token()
		}
		if !errors.Is(err, io.EOF) {
			t.Errorf("%s: %v", file, err)
		}
		if !bytes.Contains(picture, []byte("prefers-color-scheme: dark")) {
			t.Errorf("%s has one theme only", file)
		}
	}
}
