package slb

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/build"
)

func TestNotes(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name        string
		annotations map[annotation.Suffix]string
		want        []string
	}{
		{"none", nil, nil},
		{"acts on the port", map[annotation.Suffix]string{annotation.HealthyThreshold: "3", annotation.EstablishedTimeout: "10"}, nil},
		{"of other protocols", map[annotation.Suffix]string{annotation.HealthCheckFlag: "on", annotation.HTTP2Enabled: "on"}, []string{
			"loadbalancer-http2-enabled has no effect: no port is served by https",
			"loadbalancer-health-check-flag has no effect: no port is served by http or https",
		}},
		{"timeout at the interval", map[annotation.Suffix]string{annotation.HealthCheckConnectTimeout: "7", annotation.HealthCheckInterval: "7"}, nil},
		{"timeout below the interval", map[annotation.Suffix]string{annotation.HealthCheckConnectTimeout: "1"}, []string{
			"loadbalancer-health-check-connect-timeout: 1 s is below loadbalancer-health-check-interval: 2 s, so that the cloud waits 2 s",
		}},
		{"default below the interval", map[annotation.Suffix]string{annotation.HealthCheckInterval: "9", annotation.ProtocolPort: "http:80"}, []string{
			"loadbalancer-health-check-timeout: 5 s is below loadbalancer-health-check-interval: 9 s, so that the cloud waits 9 s",
		}},
		{"something invalid", map[annotation.Suffix]string{annotation.HealthCheckFlag: "on", annotation.HealthCheckInterval: "x"}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			c := newBuildCase(80)
			for suffix, value := range test.annotations {
				annotate(c.svc, suffix, value)
			}
			model, _ := c.build()
			params, _ := annotation.Parse(c.svc.Annotations)
			if diff := cmp.Diff(test.want, build.Ineffective(params, model)); diff != "" {
				t.Errorf("notes (-want +got):\n%s", diff)
			}
		})
	}
}

// TestNotesAreInTheLogOnce: each text once, however many passes come to it, and never as an event.
func TestNotesAreInTheLogOnce(t *testing.T) {
	t.Parallel()
	svc := testService("web", 80)
	annotate(svc, annotation.HealthCheckFlag, "on")
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
	w.change("web", func(svc *corev1.Service) { annotate(svc, annotation.HealthCheckMethod, "get") })
	pass(2)
	for _, event := range w.told() {
		if !strings.HasPrefix(event, "Normal "+problem.ReasonEnsured) {
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
