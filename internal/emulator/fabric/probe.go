package fabric

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// checkFail is the reason of a check that got a wrong answer.
const checkFail = "CHECK_FAIL"

// probe checks a backend server once, within the check's timeout. A nil error means that it answered as it should.
func (f *Fabric) probe(ctx context.Context, m backend, c check, source netip.AddrPort) error {
	if m.unreachable != "" {
		return fmt.Errorf("check %s: %w", m.addr, &connectError{errors.New(m.unreachable)})
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	addr := m.addr
	if c.port != 0 {
		host, _, err := net.SplitHostPort(addr)
		if err != nil {
			return fmt.Errorf("check %s: %w", addr, err)
		}
		addr = net.JoinHostPort(host, strconv.Itoa(c.port))
	}
	dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
		conn, err := f.network.Dial(ctx, m.instanceID, network, addr, source)
		if err != nil {
			return nil, &connectError{err}
		}
		return conn, nil
	}
	switch c.kind {
	case "http":
		return probeHTTP(ctx, dial, addr, c)
	case "udp":
		return probeUDP(ctx, dial, c)
	default:
		conn, err := dial(ctx, "tcp", "")
		if err != nil {
			return fmt.Errorf("check %s: %w", addr, err)
		}
		return conn.Close()
	}
}

// reasonOf is why a check failed, as GetListenerHealthStatus of NLB spells it; "" for one that did not.
func reasonOf(err error) string {
	var refused *connectError
	connecting := errors.As(err, &refused)
	slow := errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded)
	switch {
	case err == nil:
		return ""
	case slow && connecting:
		return "CONNECT_TIMEOUT"
	case slow:
		return "RECV_TIMEOUT"
	case connecting:
		return "CONNECT_FAIL"
	default:
		return checkFail
	}
}

type dialer func(ctx context.Context, network, addr string) (net.Conn, error)

func probeHTTP(ctx context.Context, dial dialer, addr string, c check) error {
	r, err := http.NewRequestWithContext(ctx, c.method, "http://"+addr+c.uri, nil)
	if err != nil {
		return fmt.Errorf("check %s: %w", addr, err)
	}
	// The vendor's placeholders for the backend server's own address are what the URL says already.
	if c.domain != "" && c.domain != "$_ip" && c.domain != "$SERVER_IP" {
		r.Host = c.domain
	}
	transport := &http.Transport{DialContext: dial, DisableKeepAlives: true}
	defer transport.CloseIdleConnections()
	answer, err := transport.RoundTrip(r)
	if err != nil {
		return fmt.Errorf("check %s: %w", addr, err)
	}
	defer answer.Body.Close() //nolint:errcheck // only the status matters
	class := fmt.Sprintf("http_%dxx", answer.StatusCode/100)
	if !slices.Contains(strings.Split(c.codes, ","), class) {
		return fmt.Errorf("check %s: status %d is none of %s", addr, answer.StatusCode, c.codes)
	}
	return nil
}

// probeUDP sends the request and waits for the expected answer. Without an expectation silence is good: only a host that
// says "nobody listens here" fails.
func probeUDP(ctx context.Context, dial dialer, c check) error {
	conn, err := dial(ctx, "udp", "")
	if err != nil {
		return fmt.Errorf("check by UDP: %w", err)
	}
	defer conn.Close() //nolint:errcheck // a datagram socket holds nothing back
	if deadline, ok := ctx.Deadline(); ok {
		_ = conn.SetDeadline(deadline)
	}
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
	if _, err = conn.Write([]byte(c.request)); err != nil {
		return fmt.Errorf("check by UDP: %w", err)
	}
	buffer := make([]byte, maxDatagram)
	n, err := conn.Read(buffer)
	switch {
	case err == nil && (c.expectation == "" || string(buffer[:n]) == c.expectation):
		return nil
	case err == nil:
		return fmt.Errorf("check by UDP: the answer %q is not %q", buffer[:n], c.expectation)
	case errors.Is(err, os.ErrDeadlineExceeded) && c.expectation == "":
		return nil
	default:
		return fmt.Errorf("check by UDP: %w", err)
	}
}
