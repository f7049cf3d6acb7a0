package slb

import (
	"bytes"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// TestNotesAreInTheLogOnce: each text once, however many passes come to it, and never as an event.
func TestNotesAreInTheLogOnce(t *testing.T) {
	t.Parallel()
	svc := testService("web", 80)
	annotate(svc, annotation.HealthCheckFlag, "on")
	w := settled(t, svc)
	w.restart()
	w.newEvents()
	lines := &lineCounter{}
	ctx := klog.NewContext(t.Context(), textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(lines))))
	pass := func(want int) {
		t.Helper()
		if _, err := w.Reconcile(ctx, w.get("web")); err != nil {
			t.Fatal(err)
		}
		if lines.found != want {
			t.Errorf("%d lines in the log, want %d", lines.found, want)
		}
	}
	pass(1)
	pass(1)
	w.change("web", func(svc *corev1.Service) { annotate(svc, annotation.HealthCheckMethod, "get") })
	pass(2)
	for _, event := range w.newEvents() {
		if !strings.HasPrefix(event, "Normal "+problem.ReasonEnsured) {
			t.Errorf("event %q, want none but that of the change", event)
		}
	}
}

// lineCounter counts the lines of the log that are about notes.
type lineCounter struct{ found int }

func (l *lineCounter) Write(line []byte) (int, error) {
	if bytes.Contains(line, []byte("Some annotations have no effect")) {
		l.found++
	}
	return len(line), nil
}
