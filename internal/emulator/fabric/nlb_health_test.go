package fabric

import (
	"context"
	"io"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
)

func checks(kind string) cloud.NLBHealthCheck {
	return cloud.NLBHealthCheck{Enabled: true, Type: kind, ConnectTimeout: 1, Interval: 1, Healthy: 2, Unhealthy: 2}
}

func TestNLBChecksDecide(t *testing.T) {
	t.Parallel()
	w := newNLBWorld(t)
	one, two := newServer(t, "one", w.machine("i-a", "10.1.45.1")), newServer(t, "two", w.machine("i-b", "10.2.45.1"))
	first, second := ecsServer("i-a", one.port(), 100), ecsServer("i-b", two.port(), 100)
	w.change(func() { w.pool.HealthCheck = checks("TCP") })
	w.servers(first, second)
	l := w.open("TCP", 80, nil)
	is := func(s *cloud.NLBServer, status, reason string) func(context.Context) bool {
		return func(context.Context) bool { return w.health(l, s) == cloud.Health{Status: status, Reason: reason} }
	}
	testkit.Eventually(t, "both answer", func(ctx context.Context) bool { return is(first, Normal, "")(ctx) && is(second, Normal, "")(ctx) })
	one.stop()
	testkit.Eventually(t, "the first one fails", is(first, Abnormal, "CONNECT_FAIL"))
	wantEqual(t, "only the healthy one", greetings(t, w.at(l), 6), map[string]int{"two": 6})

	// A check on a port that nobody has: all fail, and all get connections.
	closed := newServer(t, "", w.LoopbackAddress("10.1.45.1"))
	closed.stop()
	w.change(func() { w.pool.HealthCheck.ConnectPort = closed.port() })
	testkit.Eventually(t, "the second one fails", is(second, Abnormal, "CONNECT_FAIL"))
	wantEqual(t, "best effort", greetings(t, w.at(l), 3), map[string]int{"two": 3})
	w.change(func() { w.pool.HealthCheck.Enabled = false })
	testkit.Eventually(t, "nothing is known without checks", is(second, Unavailable, ""))
}

func TestNLBChecksByHTTP(t *testing.T) {
	t.Parallel()
	w := newNLBWorld(t)
	var seen atomic.Value
	port := newWebServer(t, w.machine("i-a", "10.1.46.1"), func(rw http.ResponseWriter, r *http.Request) {
		seen.Store(r.Method + " " + r.Host + r.URL.Path)
		rw.WriteHeader(http.StatusFound)
	})
	s := ecsServer("i-a", port, 100)
	w.change(func() { w.pool.HealthCheck = checks("HTTP") })
	w.change(func() {
		w.pool.HealthCheck.Domain, w.pool.HealthCheck.URL, w.pool.HealthCheck.Codes = "check.test", "/alive", []string{"http_2xx", "http_3xx"}
	})
	w.servers(s)
	l := w.open("TCP", 80, nil)
	testkit.Eventually(t, "one of the codes", func(context.Context) bool { return w.health(l, s).Status == Normal })
	wantEqual(t, "request", seen.Load().(string), "GET check.test/alive")
	w.change(func() { w.pool.HealthCheck.Codes, w.pool.HealthCheck.Domain = nil, "$SERVER_IP" })
	testkit.Eventually(t, "no longer", func(context.Context) bool {
		return w.health(l, s) == cloud.Health{Status: Abnormal, Reason: "CHECK_FAIL"}
	})
	wantEqual(t, "host", seen.Load().(string), "GET 10.1.46.1:"+itoa(port)+"/alive")
}

func TestNLBChecksByUDP(t *testing.T) {
	t.Parallel()
	w := newNLBWorld(t)
	host := w.machine("i-a", "10.1.47.1")
	good := ecsServer("i-a", newEcho(t, host, prefixed("answer to ")), 100)
	silent := ecsServer("i-a", newEcho(t, host, func(string) string { return "" }), 100)
	w.change(func() { w.pool.Protocol, w.pool.HealthCheck = "UDP", checks("UDP") })
	w.change(func() { w.pool.HealthCheck.Request, w.pool.HealthCheck.Expect = "ping", "answer to ping" })
	w.servers(good, silent)
	l := w.open("UDP", 53, nil)
	testkit.Eventually(t, "as expected, and silence", func(context.Context) bool {
		return w.health(l, good).Status == Normal && w.health(l, silent) == cloud.Health{Status: Abnormal, Reason: "RECV_TIMEOUT"}
	})
	wantEqual(t, "only the healthy one", datagrams(t, w.at(l))("x"), "answer to x")
}

// TestNLBUnhealthyServersDrain: without drain, connections to a backend server that fails its checks go on; with it, they end after its
// timeout.
func TestNLBUnhealthyServersDrain(t *testing.T) {
	t.Parallel()
	w := newNLBWorld(t)
	host := w.machine("i-a", "10.1.50.1")
	one, checkedPort := newServer(t, "one", host), newServer(t, "check", host)
	s := ecsServer("i-a", one.port(), 100)
	w.change(func() { w.pool.HealthCheck = checks("TCP") })
	w.change(func() { w.pool.HealthCheck.ConnectPort = checkedPort.port() })
	w.servers(s)
	l := w.open("TCP", 80, nil)
	testkit.Eventually(t, "it is healthy", func(context.Context) bool { return w.health(l, s).Status == Normal })
	c := testkit.Must(dialTo(t, "", w.at(l)))(t)
	defer c.Close()
	testkit.Must(read(c))(t)
	checkedPort.stop()
	testkit.Eventually(t, "it fails", func(context.Context) bool { return w.health(l, s).Status == Abnormal })
	_ = testkit.Must(io.WriteString(c, "x"))(t)
	wantEqual(t, "without drain", testkit.Must(read(c))(t), "x")
	w.change(func() { w.pool.ConnectionDrain, w.pool.ConnectionDrainTimeout = true, 1 })
	if _, err := read(c); err == nil {
		t.Error("with drain, the connection goes on after its timeout")
	}
}
