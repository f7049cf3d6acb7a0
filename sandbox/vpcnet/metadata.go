//go:build linux

package vpcnet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"
)

// metadataAddress is where an instance asks about itself.
// Source: https://www.alibabacloud.com/help/en/ecs/user-guide/view-instance-metadata
const metadataAddress = "100.100.100.200:80"

// metadataServer answers one instance.
type metadataServer struct {
	server *http.Server
	served chan error
}

// serveMetadata answers on the link of an instance. Each link has a socket of its own, so whoever asks gets the metadata of the
// machine it runs on, also a pod with an address that no route knows yet.
func (n *Network) serveMetadata(ctx context.Context, p *port) (*metadataServer, error) {
	l, err := n.cloud.listen(ctx, &net.ListenConfig{Control: control(transparent, boundTo(p.link))}, metadataAddress)
	if err != nil {
		return nil, fmt.Errorf("serve metadata: %w", err)
	}
	m := &metadataServer{served: make(chan error, 1)}
	m.server = &http.Server{Handler: n.metadataOf(p.Name), ReadHeaderTimeout: 10 * time.Second}
	go func() { m.served <- m.server.Serve(l) }()
	return m, nil
}

// metadataOf serves /latest/ for an instance.
func (n *Network) metadataOf(instanceID string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n.mu.Lock()
		handler := n.metadata
		n.mu.Unlock()
		if handler == nil || !strings.HasPrefix(r.URL.Path, "/latest/") {
			http.NotFound(w, r)
			return
		}
		inner := r.Clone(r.Context())
		inner.URL.Path = "/metadata/" + instanceID + r.URL.Path
		inner.URL.RawPath = ""
		handler.ServeHTTP(w, inner)
	})
}

func (m *metadataServer) close() error {
	err := m.server.Close()
	if served := <-m.served; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}
