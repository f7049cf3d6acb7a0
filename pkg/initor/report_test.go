package initor

import (
	"os"
	"path/filepath"
	"testing"
)

func TestReportSurvivesTheTerminationLog(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "termination-log")
	want := Result{Outcome: OutcomeSkipped, ProviderID: "k3s://a", Reason: "metadata service: \"off\""}
	if err := WriteReport(path, want); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got, ok := ParseReport(string(text)); !ok || got != want {
		t.Errorf("ParseReport(%s) = %+v, %t, want %+v", text, got, ok, want)
	}
}

func TestParseReportRefusesLogs(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "provider-initor: get node a: forbidden", `{}`, `{"outcome":"later"}`, `"set"`} {
		if got, ok := ParseReport(text); ok {
			t.Errorf("ParseReport(%q) = %+v, want it refused", text, got)
		}
	}
}

func TestWriteReportNamesThePath(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "missing", "termination-log")
	if err := WriteReport(path, Result{Outcome: OutcomeSet}); err == nil {
		t.Errorf("WriteReport(%s) gave no error", path)
	}
}
