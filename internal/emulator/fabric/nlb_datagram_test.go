package fabric

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"testing"
	"time"

	"github.com/pires/go-proxyproto"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
)

func prefixed(name string) func(string) string {
	return func(text string) string { return name + text }
}

func TestNLBDatagrams(t *testing.T) {
	t.Parallel()
	w := newNLBWorld(t)
	one := newEcho(t, w.machine("i-a", "10.1.41.1"), prefixed("one "))
	two := newEcho(t, w.machine("i-b", "10.2.41.1"), prefixed("two "))
	w.change(func() { w.pool.Protocol, w.nlb.CrossZone = "UDP", false })
	l := w.open("UDP", 53, nil)
	w.servers(ecsServer("i-a", one, 100), ecsServer("i-b", two, 100))
	wantEqual(t, "zone a", datagrams(t, w.where(l, vipA, 53))("x"), "one x")
	wantEqual(t, "zone b", datagrams(t, w.where(l, vipB, 53))("x"), "two x")

	w.change(func() { w.nlb.CrossZone = true })
	w.servers(ecsServer("i-a", one, 100))
	ask := datagrams(t, w.where(l, vipB, 53))
	wantEqual(t, "across zones", ask("x"), "one x")
	w.servers(ecsServer("i-b", two, 100))
	testkit.Eventually(t, "without drain a session goes on elsewhere at once", func(context.Context) bool { return ask("x") == "two x" })
	w.change(func() { w.pool.ConnectionDrain, w.pool.ConnectionDrainTimeout = true, 900 })
	w.servers(ecsServer("i-a", one, 100))
	wantEqual(t, "with drain it stays", ask("x"), "two x")
	wantEqual(t, "new ones do not", datagrams(t, w.where(l, vipB, 53))("x"), "one x")
}

func TestNLBDatagramRange(t *testing.T) {
	t.Parallel()
	w := newNLBWorld(t)
	port := newEcho(t, w.machine("i-a", "10.1.42.1"), prefixed("any "))
	w.change(func() { w.pool.Protocol, w.pool.AnyPort = "UDP", true })
	w.servers(ecsServer("i-a", 0, 100))
	l := w.open("UDP", 0, func(l *cloud.NLBListener) { l.Start, l.End = port-1, port+1 })
	wantEqual(t, "sockets", len(w.Endpoints(l.ListenerID())), 6)
	wantEqual(t, "the port of the client", datagrams(t, w.where(l, vipA, port))("x"), "any x")
}

func TestNLBDatagramProxyProtocol(t *testing.T) {
	t.Parallel()
	w := newNLBWorld(t)
	port := newEcho(t, w.machine("i-a", "10.1.43.1"), func(text string) string {
		reader := bufio.NewReader(bytes.NewBufferString(text))
		h, err := proxyproto.Read(reader)
		if err != nil {
			return "plain " + text
		}
		rest, _ := io.ReadAll(reader)
		return h.DestinationAddr.String() + " " + string(rest)
	})
	w.change(func() { w.pool.Protocol = "UDP" })
	w.servers(ecsServer("i-a", port, 100))
	l := w.open("UDP", 53, func(l *cloud.NLBListener) { l.ProxyProtocol = true })
	wantEqual(t, "the first datagram", datagrams(t, w.where(l, vipB, 53))("x"), vipB+":53 x")
}

// TestSessionsEndByTheListener: a UDP listener of NLB says how long its sessions may be idle.
func TestSessionsEndByTheListener(t *testing.T) {
	t.Parallel()
	w := newNLBWorld(t)
	port := newEcho(t, w.machine("i-a", "10.1.44.1"), prefixed("one "))
	w.change(func() { w.pool.Protocol = "UDP" })
	w.servers(ecsServer("i-a", port, 100))
	l := w.open("UDP", 53, func(l *cloud.NLBListener) { l.IdleTimeout = 1 })
	wantEqual(t, "a session", datagrams(t, w.at(l))("x"), "one x")
	began := time.Now()
	testkit.Eventually(t, "it ends", func(context.Context) bool { return len(w.conns.listeners()) == 0 })
	if time.Since(began) > 30*time.Second {
		t.Errorf("ended after %s, want about 1s", time.Since(began))
	}
}
