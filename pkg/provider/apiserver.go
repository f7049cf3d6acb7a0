package provider

import (
	"context"
	"net"
	"net/url"
	"time"

	"k8s.io/klog/v2"
)

// lookupTimeout bounds the resolution of the API server's name, which the client has resolved before.
const lookupTimeout = 5 * time.Second

// APIServerAddresses returns the addresses behind the host of a client configuration: those of a load balancer in front of
// the API servers, where there is one. None are known when the name cannot be resolved here, as behind a proxy.
func APIServerAddresses(ctx context.Context, host string) []string {
	name := host
	if parsed, err := url.Parse(host); err == nil && parsed.Hostname() != "" {
		name = parsed.Hostname()
	} else if bare, _, err := net.SplitHostPort(host); err == nil {
		name = bare
	}
	if net.ParseIP(name) != nil {
		return []string{name}
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	addresses, err := net.DefaultResolver.LookupHost(ctx, name)
	if err != nil {
		klog.FromContext(ctx).Info("Cannot resolve the name of the API server, so a load balancer in front of it cannot be recognized", "host",
			name, "err", err)
		return nil
	}
	return addresses
}
