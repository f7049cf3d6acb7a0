package controlplane

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"sigs.k8s.io/yaml"
)

// egressTimeout bounds one connection of the API server to a machine or pod.
const egressTimeout = 10 * time.Second

// Network is a network of machines that is not this host's: the API server is also served there, and its own connections to kubelets and
// webhooks go there.
type Network struct {
	// Address is the API server's in that network.
	Address netip.Addr
	// Listen and Dial are those of the network.
	Listen func(ctx context.Context, address string) (net.Listener, error)
	Dial   func(ctx context.Context, network, address string) (net.Conn, error)
}

// manyListeners is several listeners in one. Its address is the first one's.
type manyListeners struct {
	listeners []net.Listener
	accepted  chan net.Conn
	closed    chan struct{}
	once      sync.Once
}

func listenAll(listeners ...net.Listener) *manyListeners {
	m := &manyListeners{listeners: listeners, accepted: make(chan net.Conn), closed: make(chan struct{})}
	for _, listener := range listeners {
		go m.accept(listener)
	}
	return m
}

// accept hands over connections until its listener is closed.
func (m *manyListeners) accept(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		select {
		case m.accepted <- conn:
		case <-m.closed:
			_ = conn.Close() // nobody is left to serve it
		}
	}
}

func (m *manyListeners) Accept() (net.Conn, error) {
	select {
	case conn := <-m.accepted:
		return conn, nil
	case <-m.closed:
		return nil, net.ErrClosed
	}
}

func (m *manyListeners) Close() error {
	var errs []error
	m.once.Do(func() {
		close(m.closed)
		for _, listener := range m.listeners {
			errs = append(errs, listener.Close())
		}
	})
	return errors.Join(errs...)
}

func (m *manyListeners) Addr() net.Addr { return m.listeners[0].Addr() }

// listenAlso serves the API in the network, too, under the port that it has on this host: endpoints name one port only.
func (n *Network) listenAlso(ctx context.Context, here net.Listener) (net.Listener, error) {
	port := here.Addr().(*net.TCPAddr).Port //nolint:forcetypeassert // it serves TCP
	there, err := n.Listen(ctx, net.JoinHostPort(n.Address.String(), strconv.Itoa(port)))
	if err != nil {
		return nil, fmt.Errorf("listen for the API server in the machines' network: %w", err)
	}
	return listenAll(here, there), nil
}

// startEgress runs the proxy through which the API server reaches the network, on a Unix socket, and returns the file that configures
// the API server for it. The proxy ends with ctx.
func (n *Network) startEgress(ctx context.Context, files *files) (string, error) {
	socket := filepath.Join(files.dir, "egress.sock")
	listener, err := (&net.ListenConfig{}).Listen(ctx, "unix", socket)
	if err != nil {
		return "", fmt.Errorf("listen for the API server's connections to machines: %w", err)
	}
	server := &http.Server{Handler: http.HandlerFunc(n.connect), ReadHeaderTimeout: egressTimeout}
	context.AfterFunc(ctx, func() { _ = server.Close() }) // the listener's end is all that counts
	go func() { _ = server.Serve(listener) }()
	config, err := yaml.Marshal(map[string]any{
		"apiVersion": "apiserver.k8s.io/v1beta1", "kind": "EgressSelectorConfiguration",
		"egressSelections": []any{map[string]any{"name": "cluster", "connection": map[string]any{
			"proxyProtocol": "HTTPConnect", "transport": map[string]any{"uds": map[string]string{"udsName": socket}},
		}}},
	})
	if err != nil {
		return "", fmt.Errorf("encode the API server's egress configuration: %w", err)
	}
	path := files.path("egress.yaml")
	return path, write(path, config)
}

// connect serves one CONNECT request: a tunnel into the network.
func (n *Network) connect(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), egressTimeout)
	defer cancel()
	there, err := n.Dial(ctx, "tcp", r.Host)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer there.Close()
	here, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer here.Close()
	if _, err := io.WriteString(here, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return // the API server is gone
	}
	splice(here, buffered.Reader, there)
}

// splice copies both ways until one side has ended.
func splice(here net.Conn, fromHere *bufio.Reader, there net.Conn) {
	done := make(chan struct{}, 2)
	pump := func(to io.Writer, from io.Reader) {
		_, _ = io.Copy(to, from) // a broken connection is how tunnels end
		done <- struct{}{}
	}
	go pump(there, fromHere)
	go pump(here, there)
	<-done
}
