package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/freeport"
)

const (
	idleConnections = 20_000
	// heldConnections is how many of them this process holds: it has as many files as it may open.
	heldConnections = 10_000
	idleMiBMore     = 20
	healthMillis    = 100
)

// healthPort measures what idle connections cost, which everybody can open who reaches the port.
func healthPort(ctx context.Context, r run) (figures []Figure, err error) {
	e, err := newEnv(ctx, r, envOptions{nodes: clbNodes})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, e.stop(ctx)) }()
	port, err := freeport.FindOne(ctx)
	if err != nil {
		return nil, err
	}
	if err = e.startManager(ctx, "--secure-port="+strconv.Itoa(port)); err != nil {
		return nil, err
	}
	if _, err = e.settled(ctx, everything); err != nil {
		return nil, err
	}
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	if _, err = probe(ctx, address); err != nil {
		return nil, err
	}
	before, err := residentMiB(e.manager.pid())
	if err != nil {
		return nil, err
	}
	connections := make([]net.Conn, 0, idleConnections)
	defer func() {
		for _, conn := range connections {
			_ = conn.Close()
		}
	}()
	var dialer net.Dialer
	for i := range idleConnections {
		conn, failed := dialer.DialContext(ctx, "tcp", address)
		if failed != nil {
			return nil, fmt.Errorf("open connection %d to the health port: %w", i+1, failed)
		}
		if connections = append(connections, conn); len(connections) > heldConnections {
			_ = connections[0].Close() // the port has closed it long since
			connections = connections[1:]
		}
	}
	took, err := probe(ctx, address)
	if err != nil {
		return nil, err
	}
	after, err := residentMiB(e.manager.pid())
	operation := fmt.Sprintf("%d idle connections to the health port", idleConnections)
	return []Figure{
		atMost(operation+": more resident memory", after-before, "MiB", idleMiBMore),
		atMost(operation+": /healthz answers", float64(took)/float64(time.Millisecond), "ms", healthMillis),
	}, err
}

// probe asks for the manager's health as a kubelet does, on a connection of its own.
func probe(ctx context.Context, address string) (time.Duration, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/healthz", nil)
	if err != nil {
		return 0, fmt.Errorf("probe: %w", err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	begin := time.Now()
	response, err := client.Do(request)
	if err != nil {
		return 0, fmt.Errorf("probe: %w", err)
	}
	took := time.Since(begin)
	if err := response.Body.Close(); err != nil || response.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("probe: status %d: %w", response.StatusCode, err)
	}
	return took, nil
}
