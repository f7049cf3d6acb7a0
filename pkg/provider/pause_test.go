package provider

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/doctor"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
)

// TestPauseFollowsTheFile: a changed cloud-config pauses and resumes without a restart; one that cannot be read, or was emptied, changes
// nothing.
func TestPauseFollowsTheFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "cloud-config.conf")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(configText("first", ""))
	config, err := ReadConfigFile(path)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		pause, changes := newPauseSwitch(config), 0
		pause.follow(func() { changes++ })
		pause.begin(ctx)
		for _, step := range []struct {
			text    string
			on      bool
			changes int
		}{
			{configText("first", ""), false, 0},
			{configText("first", `, "paused": true`), true, 1},
			{configText("second", `, "paused": true`), true, 1},
			{`{"Global": {"paused": "no"`, true, 1},
			{"", true, 1},
			{configText("first", `, "paused": false`), false, 2},
		} {
			write(step.text)
			time.Sleep(time.Minute)
			synctest.Wait()
			if pause.active() != step.on || changes != step.changes {
				t.Errorf("paused %t after %d changes, want %t after %d", pause.active(), changes, step.on, step.changes)
			}
		}
	})
}

// TestDoctorShowsPauses: a pause is the first thing to know of a manager that changes nothing.
func TestDoctorShowsPauses(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	p.config.Paused = true
	p.nodes = append(p.nodes,
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop",
			Annotations: map[string]string{driver.AnnotationPaused: "true"}}})
	report := p.examine(t)
	if wrong := wrongOf(report); len(wrong) != 1 || wrong[0].Subject != "pause" || !strings.Contains(wrong[0].Detail, "Global.paused") {
		t.Errorf("wrong: %v, want the pause", wrong)
	}
	found := false
	for _, check := range report.Checks {
		found = found || check.Status == doctor.Optional && strings.Contains(check.Detail, "shop/web")
	}
	if !found {
		t.Errorf("the report does not name the paused Service:\n%s", report)
	}
}

// TestDoctorShowsUnknownFields: a misspelled pause pauses nothing, and the report says so.
func TestDoctorShowsUnknownFields(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	p.config.Unknown = []string{"Global.pausd (did you mean paused?)"}
	if report := p.examine(t); !strings.Contains(report.String(), "unknown fields have no effect: Global.pausd (did you mean paused?)") {
		t.Errorf("the report does not name the field:\n%s", report)
	}
}
