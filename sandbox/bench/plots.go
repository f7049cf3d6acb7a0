package bench

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/plot"
)

// WritePlots draws the charts of docs/explanation/scale.md into a directory, with what was measured. A file there keeps that, so that the
// charts also show scenarios that an earlier run has measured. Notes say which these are, and which are left out.
func WritePlots(dir string, measured map[string]plot.Measured, notes io.Writer) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make the directory of the charts: %w", err)
	}
	all, err := earlier(dir)
	if err != nil {
		return err
	}
	for _, scenario := range slices.Sorted(maps.Keys(all)) {
		if _, again := measured[scenario]; !again {
			note(notes, "the charts show what the scenario %s measured on %s", scenario, all[scenario].Date)
		}
	}
	maps.Copy(all, measured)
	charts, lacking, err := plot.ScaleCharts(all)
	if err != nil {
		return err
	}
	for _, scenario := range lacking {
		note(notes, "the charts leave out what the scenario %s has not measured", scenario)
	}
	text, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return fmt.Errorf("encode what was measured: %w", err)
	}
	charts[plot.MeasuredFile] = string(text) + "\n"
	for _, name := range slices.Sorted(maps.Keys(charts)) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(charts[name]), 0o644); err != nil { //nolint:gosec // published files
			return fmt.Errorf("write a chart: %w", err)
		}
	}
	return nil
}

// earlier is what earlier runs have measured.
func earlier(dir string) (map[string]plot.Measured, error) {
	all := map[string]plot.Measured{}
	text, err := os.ReadFile(filepath.Join(dir, plot.MeasuredFile))
	if errors.Is(err, fs.ErrNotExist) {
		return all, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err != nil {
		return nil, fmt.Errorf("read what earlier runs have measured: %w", err)
	}
	return all, nil
}

// note drops write errors, as [run.say] does.
func note(w io.Writer, format string, args ...any) {
	_, _ = fmt.Fprintf(w, format+"\n", args...)
}
