package controlplane

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"testing"

	"sigs.k8s.io/yaml"
)

func listenLoopback(t *testing.T) net.Listener {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestAllListenersAreServed(t *testing.T) {
	t.Parallel()
	first, second := listenLoopback(t), listenLoopback(t)
	both := listenAll(first, second)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "here") }))
	server.Listener = both
	server.Start()
	for _, l := range []net.Listener{first, second} {
		if got := get(t, http.DefaultClient, "http://"+l.Addr().String()); got != "here" {
			t.Errorf("%s answers %q", l.Addr(), got)
		}
	}
	server.Close()
	if _, err := both.Accept(); err == nil {
		t.Error("a closed listener accepts")
	}
}

func get(t *testing.T, client *http.Client, from string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, from, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func TestEgressGoesThroughTheNetwork(t *testing.T) {
	t.Parallel()
	machine := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "kubelet") }))
	defer machine.Close()
	network := &Network{
		Address: netip.MustParseAddr("10.0.0.10"),
		// Every address of the network stands at the machine.
		Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, machine.Listener.Addr().String())
		},
	}
	dir, err := os.MkdirTemp("", "egress") //nolint:usetesting // t.TempDir is too long for the name of a socket
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	config, err := network.startEgress(t.Context(), &files{dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	var selector struct {
		EgressSelections []struct {
			Connection struct {
				Transport struct{ UDS struct{ UDSName string } }
			}
		}
	}
	content, err := os.ReadFile(config)
	if err == nil {
		err = yaml.Unmarshal(content, &selector)
	}
	if err != nil {
		t.Fatal(err)
	}
	client := machine.Client()
	transport := client.Transport.(*http.Transport).Clone()
	transport.Proxy = func(*http.Request) (*url.URL, error) { return url.Parse("http://egress") }
	transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", selector.EgressSelections[0].Connection.Transport.UDS.UDSName)
	}
	transport.TLSClientConfig.ServerName = "example.com" // whom the test's certificate names
	client.Transport = transport
	if got := get(t, client, "https://10.1.0.1:10250"); got != "kubelet" {
		t.Errorf("the machine answers %q", got)
	}
}
