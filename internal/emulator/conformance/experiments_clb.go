package conformance

import (
	"bufio"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

func clbExperiments() []experiment {
	return []experiment{
		{"traffic/checks of a CLB", "slb", clbChecks},
		{"traffic/HTTP listener", "slb", clbWeb},
		{"traffic/cookies", "slb", clbCookies},
		{"traffic/servers that leave a CLB", "slb", clbLeaving},
		{"traffic/UDP sessions of a CLB", "slb", clbDatagrams},
		{"traffic/access control", "slb", clbAccess},
	}
}

// clbChecks sends connections to two backend servers whose health is checked on another port: before the checks have decided, when those of
// one have failed, and when those of both have.
func clbChecks(l *lab) {
	b := l.clb()
	for i := range 2 {
		l.serve("tcp", i, servedPort, echo(nameOf(i)))
		l.serve("tcp", i, checkedPort, echo(nameOf(i)))
	}
	l.change(b, "Add", 0, 1)
	l.listen(b, "TCP", 80, P{"HealthCheckConnectPort": fmt.Sprint(checkedPort), "healthCheckInterval": "50"})
	status := l.do("slb", "DescribeHealthStatus", P{"LoadBalancerId": b.id, "ListenerPort": "80"})
	early := served(l.greeting(clientAddress, b.address))
	l.see("network.undecided-server", lines(early, text(status, "BackendServers.BackendServer.0.ServerHealthStatus")), "served, unavailable")
	const decided = 4 * time.Minute // the thresholds are three checks
	l.pause(decided)
	l.serve("tcp", 0, checkedPort, nil)
	l.pause(decided)
	names := map[string]bool{}
	for range 6 {
		names[l.greeting(clientAddress, b.address)] = true
	}
	l.see("network.failed-server", lines(slices.Sorted(maps.Keys(names))...), nameOf(1))
	l.serve("tcp", 1, checkedPort, nil)
	l.pause(decided)
	l.see("network.all-failed", served(l.greeting(clientAddress, b.address)), refusal)
}

// served is what matters of a greeting where any backend server may give it.
func served(greeting string) string {
	if greeting == nameOf(0) || greeting == nameOf(1) {
		return "served"
	}
	return greeting
}

// web answers HTTP requests with a status and headers; without a status, the client waits.
func web(answer func(*http.Request) (status int, header http.Header)) server {
	return func(c net.Conn, _ netip.Addr) {
		for from := bufio.NewReader(c); ; {
			request, err := http.ReadRequest(from)
			if err != nil {
				return
			}
			status, header := answer(request)
			response := http.Response{StatusCode: status, ProtoMajor: 1, ProtoMinor: 1, Header: header, Body: http.NoBody}
			if status != 0 && response.Write(c) != nil {
				return
			}
		}
	}
}

// answering answers every request with a status and headers.
func answering(status int, headers http.Header) server {
	return web(func(*http.Request) (int, http.Header) { return status, headers })
}

// unstuck are parameters of an HTTP listener without checks and cookies.
func unstuck() P { return P{"HealthCheck": "off", "StickySession": "off", "RequestTimeout": "1"} }

// clbWeb asks an HTTP listener that has no backend server, one that nobody serves, one that does not answer, and one that says which
// headers the load balancer has added.
func clbWeb(l *lab) {
	b := l.clb()
	p := unstuck()
	for _, header := range []string{"SLBIP", "SLBID", "SLBPORT", "ClientSrcPort"} {
		p["XForwardedFor_"+header] = "on"
	}
	l.listen(b, "HTTP", 80, p)
	status := func() string { return fmt.Sprint(l.get(b.address, 80).status) }
	empty := status()
	l.change(b, "Add", 0)
	refused := status()
	l.serve("tcp", 0, servedPort, web(func(*http.Request) (int, http.Header) { return 0, nil }))
	l.see("network.statuses", lines(empty, refused, status()), "503, 502, 504")
	l.serve("tcp", 0, servedPort, web(func(r *http.Request) (int, http.Header) {
		return http.StatusOK, http.Header{"Seen": {lines(slices.Sorted(maps.Keys(r.Header))...)}}
	}))
	names := slices.DeleteFunc(strings.Split(l.get(b.address, 80).header.Get("Seen"), ", "), func(name string) bool {
		return !strings.HasPrefix(name, "X-Forwarded-") && !strings.HasPrefix(name, "Slb-") || name == "X-Forwarded-For"
	})
	l.see("network.header-names", lines(names...), "Slb-Id, Slb-Ip, X-Forwarded-Client-Srcport, X-Forwarded-Port")
}

// What cookies have of one connection: marks of backend servers, and times.
var (
	marks = regexp.MustCompile(`[0-9a-f]{32}`)
	times = regexp.MustCompile(`[0-9]{9,}`)
)

// clbCookies reads the cookies by which listeners know a client again.
func clbCookies(l *lab) {
	b := l.clb()
	l.serve("tcp", 0, servedPort, answering(http.StatusOK, http.Header{"Set-Cookie": {"session=own"}}))
	l.change(b, "Add", 0)
	var seen []string
	for i, more := range []P{{"StickySessionType": "insert", "CookieTimeout": "60"}, {"StickySessionType": "server", "Cookie": "session"}} {
		p := unstuck()
		maps.Copy(p, more)
		p["StickySession"] = "on"
		l.listen(b, "HTTP", 80+i, p)
		cookies := l.get(b.address, 80+i).cookies
		if len(cookies) > 0 {
			last := cookies[len(cookies)-1]
			seen = append(seen, last.Name+"="+times.ReplaceAllString(marks.ReplaceAllString(last.Value, "server"), "time"))
		}
	}
	l.see("network.cookie-values", lines(seen...), "SERVERID=server|time|time, session=server~own")
}

// clbLeaving removes a backend server to which a client is connected, without drain.
func clbLeaving(l *lab) {
	b := l.clb()
	l.serve("tcp", 0, servedPort, echo(nameOf(0)))
	l.change(b, "Add", 0)
	l.listen(b, "TCP", 80, P{"HealthCheckSwitch": "off"})
	c, _ := l.meet(clientAddress, b.address)
	l.change(b, "Remove", 0)
	l.pause(time.Minute)
	l.see("network.left-without-drain", repeats(c), again)
}

// numbered answers datagrams with the name of the server and the number of the session.
func numbered(name string) server {
	var sessions atomic.Int32
	return func(c net.Conn, _ netip.Addr) {
		session := fmt.Sprintf("%s%d", name, sessions.Add(1))
		buffer := make([]byte, 1000)
		for {
			if _, err := c.Read(buffer); err != nil {
				return
			}
			if _, err := c.Write([]byte(session)); err != nil {
				return
			}
		}
	}
}

// clbDatagrams sends datagrams a minute, and then two minutes, after the one before, and after the backend server has left.
func clbDatagrams(l *lab) {
	b := l.clb()
	for i := range 2 {
		l.serve("udp", i, servedPort, numbered(nameOf(i)))
	}
	l.change(b, "Add", 0)
	l.listen(b, "UDP", 53, P{"HealthCheckSwitch": "off"})
	ask := func() string { return l.network.ask(clientAddress, b.address, 53, "question") }
	seen := []string{ask()}
	for _, pause := range []time.Duration{time.Minute, 2 * time.Minute} {
		l.pause(pause)
		seen = append(seen, ask())
	}
	l.change(b, "Add", 1)
	l.change(b, "Remove", 0)
	l.see("network.udp-sessions", lines(append(seen, ask())...), lines("a1", "a1", "a2", "b1"))
}

// clbAccess gives a listener an access control list without entries.
func clbAccess(l *lab) {
	b := l.clb()
	l.serve("tcp", 0, servedPort, echo(nameOf(0)))
	l.change(b, "Add", 0)
	acl := text(l.do("slb", "CreateAccessControlList", P{"AclName": "conformance"}), "AclId")
	l.listen(b, "TCP", 80, P{"HealthCheckSwitch": "off", "AclStatus": "on", "AclType": "white", "AclId": acl})
	l.see("network.acl-empty", l.greeting(clientAddress, b.address), nameOf(0))
}
