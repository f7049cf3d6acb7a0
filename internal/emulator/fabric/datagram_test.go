package fabric

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/pires/go-proxyproto"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
)

// newEcho is a UDP server that answers each datagram with what answer makes of it; "" is no answer. It returns its port.
func newEcho(t *testing.T, host string, answer func(string) string) int {
	t.Helper()
	socket := testkit.Must(new(net.ListenConfig).ListenPacket(t.Context(), "udp", net.JoinHostPort(host, "0")))(t)
	var wait sync.WaitGroup
	wait.Go(func() {
		buffer := make([]byte, 2000)
		for {
			n, from, err := socket.ReadFrom(buffer)
			if err != nil {
				return
			}
			if text := answer(string(buffer[:n])); text != "" {
				_, _ = socket.WriteTo([]byte(text), from)
			}
		}
	})
	t.Cleanup(func() {
		_ = socket.Close()
		wait.Wait()
	})
	return socket.LocalAddr().(*net.UDPAddr).Port
}

// datagrams opens a client of a UDP listener; ask sends until an answer comes, because datagrams may be lost.
func datagrams(t *testing.T, where string) (ask func(string) string) {
	t.Helper()
	c := testkit.Must(new(net.Dialer).DialContext(t.Context(), "udp", where))(t)
	t.Cleanup(func() { _ = c.Close() })
	return func(text string) string {
		t.Helper()
		for range 20 {
			_ = testkit.Must(io.WriteString(c, text))(t)
			_ = c.SetReadDeadline(time.Now().Add(500 * time.Millisecond))
			if answer, err := read(c); err == nil {
				return answer
			}
		}
		t.Fatal("no answer")
		return ""
	}
}

func TestUDPListener(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	named := func(name string) func(string) string { return func(text string) string { return name + text } }
	one := newEcho(t, w.machine("i-1", "10.1.12.1"), named("one "))
	two := newEcho(t, w.machine("i-2", "10.1.12.2"), named("two "))
	w.backends(ecsBackend("i-1", one, 100))
	where := w.listener("udp", 53, nil)
	ask := datagrams(t, where)
	wantEqual(t, "first", ask("a"), "one a")
	w.backends(ecsBackend("i-1", one, 0), ecsBackend("i-2", two, 100))
	wantEqual(t, "a session stays with its backend", ask("b"), "one b")
	wantEqual(t, "a new one does not", datagrams(t, where)("c"), "two c")
	w.backends(ecsBackend("i-2", two, 100))
	testkit.Eventually(t, "a session whose backend left goes on elsewhere", func(context.Context) bool { return ask("d") == "two d" })
	w.store.Update(func() { clear(w.lb.Listeners) })
	testkit.Eventually(t, "the listener is gone", func(context.Context) bool {
		return w.Endpoint(w.lb.ListenerID(cloud.ListenerKey{Port: 53, Protocol: "udp"})) == ""
	})
}

func TestUDPProxyProtocol(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	port := newEcho(t, w.machine("i-1", "10.1.13.1"), func(text string) string {
		reader := bufio.NewReader(bytes.NewBufferString(text))
		h, err := proxyproto.Read(reader)
		if err != nil {
			return "plain " + text
		}
		rest, _ := io.ReadAll(reader)
		return h.DestinationAddr.String() + " " + string(rest)
	})
	w.backends(ecsBackend("i-1", port, 100))
	ask := datagrams(t, w.listener("udp", 53, map[string]string{"ProxyProtocolV2Enabled": "true"}))
	wantEqual(t, "the first datagram", ask("a"), "10.1.200.1:53 a")
	wantEqual(t, "later ones", ask("b"), "plain b")
}
