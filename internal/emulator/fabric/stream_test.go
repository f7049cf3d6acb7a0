package fabric

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"strconv"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pires/go-proxyproto"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
)

func itoa(n int) string { return strconv.Itoa(n) }

func isReset(err error) bool { return errors.Is(err, syscall.ECONNRESET) }

func TestAccessControl(t *testing.T) {
	t.Parallel()
	office := []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")}
	tests := []struct {
		name, kind string
		prefixes   []netip.Prefix
		source     string
		want       bool
	}{
		{"off", "", office, "192.0.2.1", true},
		{"white, inside", "white", office, "10.1.2.3", true},
		{"white, mapped", "white", office, "::ffff:10.1.2.3", true},
		{"white, outside", "white", office, "10.2.2.3", false},
		{"white, empty", "white", nil, "10.2.2.3", true},
		{"black, inside", "black", office, "10.1.2.3", false},
		{"black, outside", "black", office, "10.2.2.3", true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			wantEqual(t, test.source, access{kind: test.kind, prefixes: test.prefixes}.admits(netip.MustParseAddr(test.source)), test.want)
		})
	}
}

// request connects and waits for the first bytes of an answer. A listener that refuses may reset at once, which the connect
// sees already. The backend server greets, which the HTTP listener answers with 502.
func request(t *testing.T, from, where string) error {
	t.Helper()
	c, err := dialTo(t, from, where)
	if err != nil {
		return err
	}
	_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: shop.test\r\n\r\n")
	_, err = read(c)
	_ = c.Close()
	return err
}

func TestListenerAdmitsBySource(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newServer(t, "one", w.machine("i-1", "10.1.7.1"))
	w.backends(ecsBackend("i-1", s.port(), 100))
	w.store.Update(func() {
		w.store.ACLs.Add(&cloud.ACL{Object: cloud.Object{ID: "acl-1"}, Entries: []cloud.ACLEntry{{CIDR: "10.3.0.0/16"}}})
	})
	for _, protocol := range []string{"tcp", "http"} {
		for _, kind := range []string{"white", "black"} {
			where := w.listener(protocol, 80, map[string]string{"AclStatus": "on", "AclType": kind, "AclId": "acl-1"})
			for from, listed := range map[string]bool{"127.3.0.9": true, "127.4.0.9": false} {
				err := request(t, from, where)
				if admitted := err == nil; admitted != (listed == (kind == "white")) {
					t.Errorf("%s, %s list: %s is admitted: %v (%v)", protocol, kind, from, admitted, err)
				}
			}
		}
		w.store.Update(func() { clear(w.lb.Listeners) })
		w.Sync()
	}
}

func TestWeightZeroKeepsConnections(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one, two := newServer(t, "one", w.machine("i-1", "10.1.8.1")), newServer(t, "two", w.machine("i-2", "10.1.8.2"))
	w.backends(ecsBackend("i-1", one.port(), 100))
	where := w.listener("tcp", 80, map[string]string{"ConnectionDrain": "on", "ConnectionDrainTimeout": "1"})
	c := testkit.Must(dialTo(t, "", where))(t)
	defer c.Close()
	wantEqual(t, "established", testkit.Must(read(c))(t), "one")
	w.backends(ecsBackend("i-1", one.port(), 0), ecsBackend("i-2", two.port(), 100))
	wantEqual(t, "new ones", greetings(t, where, 5), map[string]int{"two": 5})
	_ = testkit.Must(io.WriteString(c, "still here"))(t)
	wantEqual(t, "the established one", testkit.Must(read(c))(t), "still here")
}

func TestConnectionDrain(t *testing.T) {
	t.Parallel()
	for _, drain := range []string{"on", "off"} {
		t.Run(drain, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			one, two := newServer(t, "one", w.machine("i-1", "10.1.9.1")), newServer(t, "two", w.machine("i-2", "10.1.9.2"))
			w.backends(ecsBackend("i-1", one.port(), 100))
			where := w.listener("tcp", 80, map[string]string{"ConnectionDrain": drain, "ConnectionDrainTimeout": "1"})
			c := testkit.Must(dialTo(t, "", where))(t)
			defer c.Close()
			testkit.Must(read(c))(t)
			began := time.Now()
			w.backends(ecsBackend("i-2", two.port(), 100))
			_ = testkit.Must(io.WriteString(c, "x"))(t)
			wantEqual(t, "at first it goes on", testkit.Must(read(c))(t), "x")
			if drain == "off" {
				wantEqual(t, "nothing ends it", len(w.conns.where(func(c *conn) bool { return c.drain != nil })), 0)
				return
			}
			if _, err := read(c); err == nil || time.Since(began) < time.Second || time.Since(began) > 8*time.Second {
				t.Errorf("ended with %v after %s, want an end after the timeout of 1s", err, time.Since(began))
			}
		})
	}
}

func TestDrainIsCalledOff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var all conns
		here, there := net.Pipe()
		defer there.Close()
		key, m := cloud.ListenerID{LoadBalancerID: "lb-1"}, cloud.BackendID{ServerID: "i-1"}
		c := all.add(&conn{Conn: here, listener: key, backend: m})
		all.leave(key, nil, time.Minute)
		time.Sleep(59 * time.Second)
		all.leave(key, map[cloud.BackendID]bool{m: true}, time.Minute)
		time.Sleep(time.Hour)
		wantEqual(t, "a backend that is back keeps its connection", len(all.listeners()), 1)
		all.leave(key, nil, time.Minute)
		all.leave(key, nil, time.Minute)
		time.Sleep(61 * time.Second)
		wantEqual(t, "one that stays away does not", len(all.listeners()), 0)
		_ = c.Close()
	})
}

func TestIdleConnectionEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client, a := net.Pipe()
		b, server := net.Pipe()
		done := make(chan time.Duration, 1)
		began := time.Now()
		go func() {
			join(a, b, 10*time.Second)
			done <- time.Since(began)
		}()
		time.Sleep(9 * time.Second)
		go func() { _, _ = client.Write([]byte("x")) }()
		wantEqual(t, "carried", testkit.Must(read(server))(t), "x")
		wantEqual(t, "idle time from the last byte", <-done, 19*time.Second)
		_, _ = client.Close(), server.Close()
	})
}

func TestEstablishedTimeout(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newServer(t, "one", w.machine("i-1", "10.1.14.1"))
	w.backends(ecsBackend("i-1", s.port(), 100))
	c := testkit.Must(dialTo(t, "", w.listener("tcp", 80, map[string]string{"EstablishedTimeout": "1"})))(t)
	defer c.Close()
	testkit.Must(read(c))(t)
	began := time.Now()
	if _, err := read(c); err == nil || errors.Is(err, os.ErrDeadlineExceeded) || time.Since(began) < 500*time.Millisecond {
		t.Errorf("the idle connection ended with %v after %s, want an end after about 1s", err, time.Since(began))
	}
}

func TestProxyProtocol(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	l := listenOn(t, "tcp", w.machine("i-1", "10.1.10.1"))
	defer l.Close()
	w.backends(ecsBackend("i-1", l.Addr().(*net.TCPAddr).Port, 100))
	where := w.listener("tcp", 80, map[string]string{"ProxyProtocolV2Enabled": "true"})
	c := testkit.Must(dialTo(t, "127.3.0.9", where))(t)
	defer c.Close()
	_ = testkit.Must(io.WriteString(c, "payload"))(t)
	backend := testkit.Must(l.Accept())(t)
	defer backend.Close()
	reader := bufio.NewReader(backend)
	header := testkit.Must(proxyproto.Read(reader))(t)
	port := c.LocalAddr().(*net.TCPAddr).Port
	wantEqual(t, "header", []any{int(header.Version), header.SourceAddr.String(), header.DestinationAddr.String()},
		[]any{2, "10.3.0.9:" + itoa(port), "10.1.200.1:80"})
	wantEqual(t, "then", testkit.Must(read(reader))(t), "payload")
}

func TestPersistenceBySource(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one, two := newServer(t, "one", w.machine("i-1", "10.1.11.1")), newServer(t, "two", w.machine("i-2", "10.1.11.2"))
	w.backends(ecsBackend("i-1", one.port(), 100), ecsBackend("i-2", two.port(), 100))
	where := w.listener("tcp", 80, map[string]string{"Scheduler": "rr", "PersistenceTimeout": "60"})
	wantEqual(t, "one source", len(greetings(t, where, 6)), 1)
	names := map[string]bool{}
	for i := range 4 {
		names[testkit.Must(greeting(t, "127.3.0."+itoa(i+1), where))(t)] = true
	}
	wantEqual(t, "several sources", len(names), 2)
}
