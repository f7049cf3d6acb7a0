//go:build linux && real

package real

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// pace is the time between two requests of a stream: it is meant to hit every moment, not to be load.
	pace = 20 * time.Millisecond
	// patience is how long one request may take: on a busy host, the kernel repeats a packet after 1, 2 and 4 seconds.
	patience = 8 * time.Second
)

// reply is what the test server answers.
type reply struct {
	Name, Node, Source, ForwardedFor string
}

// place is a network namespace to send requests from. With rests, a stream leaves so many requests out after each one.
type place struct {
	path  string
	rests int
}

// at finds the network of an instance ("i-sandbox0001") or a client ("vpc-client", "internet-client").
func at(t *testing.T, name string) place {
	t.Helper()
	p, err := placeOf(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// placeOf is [at] without a test.
func placeOf(ctx context.Context, name string) (place, error) {
	path, err := ask(ctx, http.MethodGet, "/_sandbox/namespace?of="+name, "")
	return place{path: strings.TrimSpace(path)}, err
}

// Ports from which requests are sent. The load balancer keeps the client's port, and a node remembers for two minutes to which pod it sent
// a connection of a client's port that was never answered. The kernel picks ports at random, so that a request could get the port of one
// that went to a pod of a dead machine shortly before, and follow it there. In turn, these last for three minutes with three streams.
const (
	firstPort = 2000
	lastPort  = 29999
)

// portsTaken counts the connections that got a port.
var portsTaken atomic.Uint32

// dial connects to "ip:port" from the place, and with TCP from a port that nobody has used for minutes.
func (p place) dial(ctx context.Context, network, addr string) (conn net.Conn, err error) {
	for ctx.Err() == nil {
		dialer := &net.Dialer{}
		if network == "tcp" {
			dialer.LocalAddr = &net.TCPAddr{Port: firstPort + int(portsTaken.Add(1)-1)%(lastPort-firstPort+1)}
		}
		err = p.do(func() (err error) {
			conn, err = dialer.DialContext(ctx, network, addr)
			return err
		})
		if dialer.LocalAddr == nil || !errors.Is(err, unix.EADDRINUSE) {
			return conn, err
		}
	}
	return nil, errors.Join(err, ctx.Err())
}

// do runs f in the namespace.
func (p place) do(f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine instead of serving others from this namespace
		namespace, err := os.Open(p.path)
		if err != nil {
			done <- err
			return
		}
		defer namespace.Close()
		if err = unix.Setns(int(namespace.Fd()), unix.CLONE_NEWNET); err == nil {
			err = f()
		}
		done <- err
	}()
	return <-done
}

// get sends one request on a connection of its own.
func (p place) get(ctx context.Context, url string) (reply, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: p.dial}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return reply{}, err
	}
	response, err := client.Do(request)
	if err != nil {
		return reply{}, err
	}
	body, err := io.ReadAll(response.Body)
	if err = errors.Join(err, response.Body.Close()); err != nil {
		return reply{}, err
	}
	if response.StatusCode != http.StatusOK {
		return reply{}, fmt.Errorf("%s: %s", response.Status, body)
	}
	header := response.Header
	return reply{
		Name: strings.TrimSpace(string(body)), Node: header.Get("Node"), Source: header.Get("Source"), ForwardedFor: header.Get("Forwarded-For"),
	}, nil
}

// failure is a request that got no answer.
type failure struct {
	at   time.Time // when it was sent
	took time.Duration
	err  error
}

// stream sends requests until it is stopped.
type stream struct {
	t     *testing.T
	begun time.Time
	stop  context.CancelFunc
	group sync.WaitGroup

	mu       sync.Mutex
	sent     int       // guarded by mu
	failures []failure // guarded by mu
}

// stream begins a constant stream of requests to urls in turn. It is stopped by the test that asks for its failures, or by the test's end.
func (p place) stream(t *testing.T, urls ...string) *stream {
	t.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	s := &stream{t: t, begun: time.Now(), stop: stop}
	t.Cleanup(func() { stop(); s.group.Wait() })
	s.group.Go(func() {
		ticker := time.NewTicker(pace * time.Duration(1+p.rests))
		defer ticker.Stop()
		for i := 0; ctx.Err() == nil; i++ {
			s.group.Go(func() { s.send(ctx, p, urls[i%len(urls)]) })
			select {
			case <-ctx.Done():
			case <-ticker.C:
			}
		}
	})
	return s
}

func (s *stream) send(ctx context.Context, p place, url string) {
	begin := time.Now()
	_, err := p.get(ctx, url)
	if ctx.Err() != nil {
		return // the end of the stream
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent++
	if err != nil {
		s.failures = append(s.failures, failure{begin, time.Since(begin), err})
	}
}

// soFar is how many requests were answered or have failed, and how many of them have failed.
func (s *stream) soFar() (sent, failed int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sent, len(s.failures)
}

// end stops the stream and returns the requests that failed.
func (s *stream) end() []failure {
	s.stop()
	s.group.Wait()
	s.t.Logf("%d of %d requests failed", len(s.failures), s.sent)
	if len(s.failures) > 0 {
		inSecond := map[int]int{}
		for _, f := range s.failures {
			inSecond[int(f.at.Sub(s.begun).Seconds())]++
		}
		s.t.Logf("by the second in which they were sent: %v", inSecond)
	}
	return s.failures
}

// wantNone ends the stream, in which no request may have failed.
func (s *stream) wantNone() {
	s.t.Helper()
	if failures := s.end(); len(failures) > 0 {
		first := failures[0]
		s.t.Errorf("%d of %d requests failed, the first one at %s: %v", len(failures), s.sent, first.at.Format(time.TimeOnly), first.err)
	}
}

// wantNoneAfter ends the stream, in which requests may have failed that were sent before a moment.
func (s *stream) wantNoneAfter(what string, moment time.Time) {
	s.t.Helper()
	s.wantNoneOf(slices.DeleteFunc(s.end(), func(f failure) bool { return !f.at.After(moment) }), what, moment)
}

// wantNoneBefore ends the stream, in which requests may have failed that were sent after a moment.
func (s *stream) wantNoneBefore(what string, moment time.Time) {
	s.t.Helper()
	s.wantNoneOf(slices.DeleteFunc(s.end(), func(f failure) bool { return !f.at.Before(moment) }), what, moment)
}

// wantNoneOf reports requests that failed before or after a moment.
func (s *stream) wantNoneOf(failures []failure, what string, moment time.Time) {
	s.t.Helper()
	if len(failures) == 0 {
		return
	}
	for _, failure := range failures[:min(len(failures), 10)] {
		s.t.Errorf("a request that was sent %s after %s failed within %s: %v", failure.at.Sub(moment), what, failure.took, failure.err)
	}
	s.t.Errorf("%d such requests failed", len(failures))
}
