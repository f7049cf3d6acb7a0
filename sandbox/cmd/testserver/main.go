// Command testserver is the workload of the sandbox's real machines: it reports who it is and who asks, over HTTP and UDP, and stops the
// way a well-behaved server does.
//
//	GET  /        its name, as light pods answer; in headers its Node, the Source (of the connection or of its PROXY protocol header) and
//	              what X-Forwarded-For the request had
//	GET  /ready   200, or 503 after the readiness switch was turned off or a stop was asked for
//	PUT  /ready   turns the switch on; DELETE /ready turns it off
//	GET  /slow?for=2s   answers after that time: a request that a stop must not cut off
//	UDP           a datagram is answered with name, node and source, separated by blanks
//
// As "testserver pause" it does nothing until it is stopped: that is the container which holds a pod's namespaces together.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/pires/go-proxyproto"
)

// maxSlow bounds how long /slow waits.
const maxSlow = time.Minute

type server struct {
	name, node string
	ready      atomic.Bool
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if len(os.Args) > 1 && os.Args[1] == "pause" {
		<-ctx.Done()
		return
	}
	listen := flag.String("http", ":80,:8080", "addresses to serve HTTP on, separated by commas")
	proxied := flag.String("proxy-protocol", "", "addresses to serve HTTP on for connections that begin with a PROXY protocol header")
	udp := flag.String("udp", ":8080", "address to answer datagrams on; empty for none")
	drain := flag.Duration("drain", 5*time.Second, "how long to go on serving, not ready any more, after SIGTERM")
	flag.Parse()
	name, err := os.Hostname()
	if err == nil {
		s := &server{name: name, node: os.Getenv("NODE_NAME")}
		s.ready.Store(true)
		err = s.run(ctx, split(*listen), split(*proxied), *udp, *drain)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "testserver:", err)
		os.Exit(1) //nolint:gocritic // the signal handler ends with the process
	}
}

func split(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' })
}

// run serves until ctx ends, then for as long as drain says, and then finishes the requests that it has.
func (s *server) run(ctx context.Context, plain, proxied []string, udp string, drain time.Duration) error {
	web := &http.Server{Handler: s.handler(), ReadHeaderTimeout: 10 * time.Second}
	var group sync.WaitGroup
	failed := make(chan error, len(plain)+len(proxied)+1)
	serve := func(l net.Listener) {
		group.Go(func() {
			if err := web.Serve(l); !errors.Is(err, http.ErrServerClosed) {
				failed <- err
			}
		})
	}
	for i, address := range append(plain, proxied...) {
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
		if err != nil {
			return err
		}
		if i >= len(plain) {
			// Without a header the connection is refused: that is how a test sees that the balancer sent none.
			l = &proxyproto.Listener{Listener: l, ConnPolicy: func(proxyproto.ConnPolicyOptions) (proxyproto.Policy, error) {
				return proxyproto.REQUIRE, nil
			}}
		}
		serve(l)
	}
	datagrams, err := s.serveUDP(ctx, &group, udp)
	if err != nil {
		return err
	}
	select {
	case err = <-failed:
		return err
	case <-ctx.Done():
	}
	s.ready.Store(false)
	time.Sleep(drain) //nolint:forbidigo // nothing signals that load balancers send no more; the signal to stop has come already
	finish, cancel := context.WithTimeout(context.Background(), maxSlow)
	defer cancel()
	err = web.Shutdown(finish)
	if datagrams != nil {
		err = errors.Join(err, datagrams.Close())
	}
	group.Wait()
	return err
}

func (s *server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /", s.report)
	mux.HandleFunc("GET /slow", func(w http.ResponseWriter, r *http.Request) {
		wait, err := time.ParseDuration(r.URL.Query().Get("for"))
		if err != nil || wait < 0 || wait > maxSlow {
			http.Error(w, fmt.Sprintf("for is %q: a duration from 0s to %s is accepted", r.URL.Query().Get("for"), maxSlow), http.StatusBadRequest)
			return
		}
		time.Sleep(wait) //nolint:forbidigo // the slow answer that the request asks for, bounded by maxSlow
		s.report(w, r)
	})
	mux.HandleFunc("GET /ready", func(w http.ResponseWriter, _ *http.Request) {
		if !s.ready.Load() {
			http.Error(w, "not ready", http.StatusServiceUnavailable)
		}
	})
	mux.HandleFunc("PUT /ready", func(http.ResponseWriter, *http.Request) { s.ready.Store(true) })
	mux.HandleFunc("DELETE /ready", func(http.ResponseWriter, *http.Request) { s.ready.Store(false) })
	return mux
}

func (s *server) report(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Node", s.node)
	w.Header().Set("Source", r.RemoteAddr)
	w.Header().Set("Forwarded-For", r.Header.Get("X-Forwarded-For"))
	_, _ = fmt.Fprintln(w, s.name) // the asker is gone when this fails
}

// serveUDP answers datagrams until the returned socket is closed.
func (s *server) serveUDP(ctx context.Context, group *sync.WaitGroup, address string) (net.PacketConn, error) {
	if address == "" {
		return nil, nil
	}
	conn, err := (&net.ListenConfig{}).ListenPacket(ctx, "udp", address)
	if err != nil {
		return nil, err
	}
	group.Go(func() {
		buffer := make([]byte, 2048)
		for {
			_, from, err := conn.ReadFrom(buffer)
			if err != nil {
				return // closed
			}
			_, _ = conn.WriteTo(fmt.Appendf(nil, "%s %s %s", s.name, s.node, from), from) // datagrams may get lost
		}
	})
	return conn, nil
}
