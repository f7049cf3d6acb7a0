package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFigures(t *testing.T) {
	t.Parallel()
	in := `{"ok":true,"steps":[{"name":"control plane","ok":true,"seen":"x","seconds":3.5,"reads":0,"writes":0},
		{"name":"routes","ok":true,"seen":"y","seconds":0.25,"reads":2,"writes":3}]}`
	var out bytes.Buffer
	if err := run(strings.NewReader(in), &out, "json"); err != nil {
		t.Fatal(err)
	}
	var got struct{ Figures []figure }
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	want := []figure{
		newFigure("control plane", 3.5, "s", 5), newFigure("routes", 0.25, "s", 0), newFigure("routes", 5, "calls", 0),
		newFigure("demo", 3.75, "s", 45),
	}
	if diff := cmp.Diff(want, got.Figures); diff != "" {
		t.Errorf("figures (-want +got):\n%s", diff)
	}
}

func TestRunFails(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ in, output string }{
		"a missed goal":    {`{"ok":true,"steps":[{"name":"control plane","seconds":5.1}]}`, "table"},
		"a failed demo":    {`{"ok":false,"steps":[]}`, "table"},
		"no document":      {``, "json"},
		"an unknown table": {`{"ok":true}`, "xml"},
	} {
		if err := run(strings.NewReader(test.in), &bytes.Buffer{}, test.output); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
