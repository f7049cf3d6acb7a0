package fabric

import (
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/netip"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
)

func TestVerdict(t *testing.T) {
	t.Parallel()
	c := check{healthy: 3, unhealthy: 2}
	tests := []struct{ name, results, want string }{
		{"new", "", ""},
		{"not finished", "++", ""},
		{"healthy", "+++", Normal},
		{"failed from the start", "--", Abnormal},
		{"interrupted", "++-++", ""},
		{"one failure", "+++-", Normal},
		{"failures not in a row", "+++-+-+-", Normal},
		{"failures in a row", "+++--", Abnormal},
		{"not yet back", "--++-++", Abnormal},
		{"back", "--+++", Normal},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var v verdict
			for _, r := range test.results {
				v = v.next(r == '+', c)
			}
			wantEqual(t, test.results, v.status, test.want)
		})
	}
}

func checked(more map[string]string) map[string]string {
	a := map[string]string{
		"HealthCheckSwitch": "on", "HealthCheckType": "tcp", "HealthCheckInterval": "1", "HealthCheckConnectTimeout": "1",
		"HealthyThreshold": "2", "UnhealthyThreshold": "2", "Scheduler": "rr",
	}
	maps.Copy(a, more)
	return a
}

func TestTCPCheckDecides(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one, two := newServer(t, "one", w.machine("i-1", "10.1.3.1")), newServer(t, "two", w.machine("i-2", "10.1.3.2"))
	checkedPort := newServer(t, "check", w.LoopbackAddress("10.1.3.2"))
	first, second := ecsBackend("i-1", one.port(), 100), ecsBackend("i-2", two.port(), 100)
	w.backends(first, second)
	where := w.listener("tcp", 80, checked(nil))
	wantEqual(t, "before the first verdict", greetings(t, where, 10), map[string]int{"one": 5, "two": 5})
	testkit.Eventually(t, "both are normal", func(context.Context) bool {
		return w.status("tcp", 80, first) == Normal && w.status("tcp", 80, second) == Normal
	})

	// The check has a port of its own on both machines, which only the second one serves.
	other := checked(map[string]string{"HealthCheckConnectPort": itoa(checkedPort.port())})
	where = w.listener("tcp", 80, other)
	testkit.Eventually(t, "the first one is abnormal", func(context.Context) bool { return w.status("tcp", 80, first) == Abnormal })
	wantEqual(t, "only the healthy one", greetings(t, where, 10), map[string]int{"two": 10})
	checkedPort.stop()
	testkit.Eventually(t, "the second one is abnormal", func(context.Context) bool { return w.status("tcp", 80, second) == Abnormal })
	if name, err := greeting(t, "", where); err == nil {
		t.Errorf("%q answers though no backend is healthy", name)
	}
}

func TestHTTPCheckDecides(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var seen atomic.Value
	var status atomic.Int32
	status.Store(http.StatusFound)
	port := newWebServer(t, w.machine("i-1", "10.1.4.1"), func(rw http.ResponseWriter, r *http.Request) {
		seen.Store(r.Method + " " + r.Host + r.URL.Path)
		rw.WriteHeader(int(status.Load()))
	})
	m := ecsBackend("i-1", port, 100)
	w.backends(m)
	a := checked(map[string]string{
		"HealthCheckType": "http", "HealthCheckDomain": "check.test", "HealthCheckURI": "/alive", "HealthCheckMethod": "get",
		"HealthCheckHttpCode": "http_2xx,http_3xx",
	})
	w.listener("tcp", 80, a)
	testkit.Eventually(t, "a status of the second class counts", func(context.Context) bool { return w.status("tcp", 80, m) == Normal })
	wantEqual(t, "request", seen.Load().(string), "GET check.test/alive")
	a["HealthCheckHttpCode"] = "http_2xx"
	w.listener("tcp", 80, a)
	testkit.Eventually(t, "no longer", func(context.Context) bool { return w.status("tcp", 80, m) == Abnormal })
	status.Store(http.StatusOK)
	testkit.Eventually(t, "back", func(context.Context) bool { return w.status("tcp", 80, m) == Normal })
	w.store.Update(func() { w.lb.Status = cloud.Inactive })
	testkit.Eventually(t, "nothing checks a stopped load balancer", func(context.Context) bool {
		return w.status("tcp", 80, m) == Unavailable
	})
}

func TestUDPCheck(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	host := w.machine("i-1", "10.1.5.1")
	port := newEcho(t, host, func(s string) string { return "answer to " + s })
	silent := newEcho(t, host, func(string) string { return "" })
	closed := newServer(t, "", host) // nobody has the UDP port of this number
	tests := []struct {
		name, request, expectation string
		port                       int
		want                       string
	}{
		{"as expected", "ping", "answer to ping", port, Normal},
		{"something else", "ping", "pong", port, Abnormal},
		{"silence is good without an expectation", "ping", "", silent, Normal},
		{"silence is bad with one", "ping", "pong", silent, Abnormal},
		{"nobody listens", "ping", "", closed.port(), Abnormal},
	}
	for _, test := range tests {
		m := ecsBackend("i-1", test.port, 100)
		t.Run(test.name, func(t *testing.T) {
			c := check{kind: "udp", timeout: 500e6, request: test.request, expectation: test.expectation}
			var probed backend
			w.store.View(func() { probed = w.backend(target{m.BackendID(), m.Type, m.Weight, ""}, w.lb.VPCID, time.Now()) })
			err := w.probe(t.Context(), probed, c, netip.AddrPort{})
			if got := map[bool]string{true: Normal, false: Abnormal}[err == nil]; got != test.want {
				t.Errorf("%s (%v), want %s", got, err, test.want)
			}
		})
	}
}

func TestUnreachableMachineFailsItsCheck(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newServer(t, "one", w.machine("i-1", "10.1.6.1"))
	m := ecsBackend("i-1", s.port(), 100)
	w.backends(m)
	w.listener("tcp", 80, checked(nil))
	testkit.Eventually(t, "normal", func(context.Context) bool { return w.status("tcp", 80, m) == Normal })
	w.store.Update(func() {
		i, _ := w.store.Instances.Get("i-1")
		i.Phase = cloud.Steady(cloud.Stopped)
	})
	testkit.Eventually(t, "abnormal", func(context.Context) bool { return w.status("tcp", 80, m) == Abnormal })
	if _, err := greeting(t, "", w.Endpoint(w.lb.ListenerID(cloud.ListenerKey{Port: 80, Protocol: "tcp"}))); err == nil {
		t.Error("a stopped machine answers")
	} else if errors.Is(err, io.EOF) {
		t.Error("the client sees an orderly end, not a reset")
	} else if !isReset(err) {
		t.Errorf("error = %v, want %v", err, syscall.ECONNRESET)
	}
}
