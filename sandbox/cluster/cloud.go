package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
)

// What the emulator's built-in configuration has.
const (
	Region          = "cn-hangzhou"
	AccessKeyID     = "emulator"
	AccessKeySecret = "emulator-secret"
)

// CloudOptions sets how the emulated cloud behaves. The zero value is a cloud that answers at once and limits nothing.
type CloudOptions struct {
	// Config is what exists in the cloud at the start, with its quotas; nil is the emulator's built-in configuration. The first nodes need the
	// vSwitches vsw-a and vsw-b of that one, and programs that use the sandbox's cloud config need its access key.
	Config *emulator.Config
	// Latency is added to every OpenAPI call; Settle is how long asynchronous states take.
	Latency, Settle time.Duration
	// RateLimits is off (also when empty) or published.
	RateLimits string
	// NoListeners makes load balancers accept no connections: thousands of them cost thousands of sockets.
	NoListeners bool
}

// Cloud is the emulated cloud, served on a loopback address. It is the only part of the sandbox that knows the emulator's Go API.
type Cloud struct {
	*emulator.Emulator
	// URL is where OpenAPI, metadata and admin API are served, without a slash at the end.
	URL string

	nodes   nodes
	server  *http.Server
	served  chan error
	outages outages
}

// startCloud runs the emulator over the network of nodes.
func startCloud(ctx context.Context, nodes nodes, opts CloudOptions) (*Cloud, error) {
	machines, network := nodes.fabric()
	cloud, err := emulator.New(emulator.Options{
		Config: opts.Config, Fabric: !opts.NoListeners, Machines: machines, Network: network, Latency: opts.Latency, Settle: opts.Settle,
		RateLimits: opts.RateLimits,
	})
	if err != nil {
		return nil, fmt.Errorf("start the emulator: %w", err)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, errors.Join(fmt.Errorf("listen for the emulator: %w", err), cloud.Close())
	}
	c := &Cloud{
		Emulator: cloud,
		nodes:    nodes,
		URL:      "http://" + listener.Addr().String(),
		served:   make(chan error, 1),
	}
	c.server = &http.Server{Handler: c.handler(), ReadHeaderTimeout: 10 * time.Second}
	go func() { c.served <- c.server.Serve(listener) }()
	return c, nil
}

// handler serves the emulator and, beside it, what only a sandbox can answer.
func (c *Cloud) handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", c.Emulator.Handler())
	mux.HandleFunc("GET /_sandbox/get", c.serveGet)
	mux.Handle("/metadata/{instance}/", c.outages.withMetadata(c.Emulator.Handler()))
	c.outages.serve(mux)
	c.nodes.serve(mux)
	return mux
}

// serveGet answers other processes what Get answers this one: whether a machine reaches an address, and who answers there.
func (c *Cloud) serveGet(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	body, err := c.Get(r.Context(), query.Get("from"), query.Get("to"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	// The asker is gone when this fails.
	_, _ = io.WriteString(w, body+"\n")
}

// close stops serving and ends the emulator. Nobody is left whose requests would need finishing.
func (c *Cloud) close() error {
	err := c.server.Close()
	if served := <-c.served; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return errors.Join(err, c.Emulator.Close())
}

// MetadataURL is the metadata service as the instance sees it.
func (c *Cloud) MetadataURL(instanceID string) string { return c.URL + "/metadata/" + instanceID }
