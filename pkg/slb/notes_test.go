package slb

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
)

func TestNotes(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name        string
		annotations map[Suffix]string
		want        []string
	}{
		{"none", nil, nil},
		{"acts on the port", map[Suffix]string{HealthyThreshold: "3", EstablishedTimeout: "10"}, nil},
		{"of other protocols", map[Suffix]string{HealthCheckFlag: "on", HTTP2Enabled: "on"}, []string{
			"loadbalancer-http2-enabled has no effect: no port is served by https",
			"loadbalancer-health-check-flag has no effect: no port is served by http or https",
		}},
		{"timeout at the interval", map[Suffix]string{HealthCheckConnectTimeout: "7", HealthCheckInterval: "7"}, nil},
		{"timeout below the interval", map[Suffix]string{HealthCheckConnectTimeout: "1"}, []string{
			"loadbalancer-health-check-connect-timeout: 1 s is below loadbalancer-health-check-interval: 2 s, so that the cloud waits 2 s",
		}},
		{"default below the interval", map[Suffix]string{HealthCheckInterval: "9", ProtocolPort: "http:80"}, []string{
			"loadbalancer-health-check-timeout: 5 s is below loadbalancer-health-check-interval: 9 s, so that the cloud waits 9 s",
		}},
		{"something invalid", map[Suffix]string{HealthCheckFlag: "on", HealthCheckInterval: "x"}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			c := newBuildCase(80)
			for suffix, value := range test.annotations {
				annotate(c.svc, suffix, value)
			}
			model, _ := c.build()
			params, _ := ParseParams(c.svc.Annotations)
			if diff := cmp.Diff(test.want, notes(params, model)); diff != "" {
				t.Errorf("notes (-want +got):\n%s", diff)
			}
		})
	}
}

// TestNotesAreInTheLogOnce: each text once, however many passes come to it, and never as an event.
func TestNotesAreInTheLogOnce(t *testing.T) {
	t.Parallel()
	svc := testService("web", 80)
	annotate(svc, HealthCheckFlag, "on")
	w := settled(t, svc)
	w.restart()
	w.told()
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
	w.change("web", func(svc *corev1.Service) { annotate(svc, HealthCheckMethod, "get") })
	pass(2)
	for _, event := range w.told() {
		if !strings.HasPrefix(event, "Normal "+ReasonEnsured) {
			t.Errorf("event %q, want none but that of the change", event)
		}
	}
}

// lineCounter counts the lines of the log that are about notes.
type lineCounter struct{ found int }

func (l *lineCounter) Write(line []byte) (int, error) {
	if bytes.Contains(line, []byte("Some annotations do not act as they read")) {
		l.found++
	}
	return len(line), nil
}
