package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/tls"
	"net"
	"testing"

	"k8s.io/cloud-provider/app/config"
	"k8s.io/cloud-provider/options"
)

// TestSecurePort: the port is served with a key that takes no time to make, and the stock options see no port for which they would make
// keys.
func TestSecurePort(t *testing.T) {
	t.Parallel()
	opts, err := options.NewCloudControllerManagerOptions()
	if err != nil {
		t.Fatal(err)
	}
	free, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	opts.SecureServing.BindAddress, opts.SecureServing.BindPort = net.IPv4(127, 0, 0, 1), free.Addr().(*net.TCPAddr).Port //nolint:forcetypeassert // it is one
	opts.Authentication.SkipInClusterLookup = true
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	secure := &securePort{opts: opts}
	secure.take()
	if opts.SecureServing.BindPort != 0 || opts.WebhookServing.BindPort != 0 {
		t.Errorf("the stock options serve on %d and %d", opts.SecureServing.BindPort, opts.WebhookServing.BindPort)
	}
	completed := (&config.Config{}).Complete()
	if err := secure.listen(completed); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	t.Cleanup(func() { close(stop) })
	if _, _, err := completed.SecureServing.Serve(nil, 0, stop); err != nil {
		t.Fatal(err)
	}
	dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // the certificate is looked at
	conn, err := dialer.DialContext(context.Background(), "tcp", completed.SecureServing.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	certificate := conn.(*tls.Conn).ConnectionState().PeerCertificates[0] //nolint:forcetypeassert // it is one
	if _, ok := certificate.PublicKey.(*ecdsa.PublicKey); !ok || certificate.VerifyHostname("localhost") != nil ||
		certificate.VerifyHostname("127.0.0.1") != nil {
		t.Errorf("certificate %v with a key of %T", certificate.Subject, certificate.PublicKey)
	}
}
