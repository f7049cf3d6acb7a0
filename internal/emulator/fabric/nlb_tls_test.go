package fabric

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"testing"
	"time"

	"github.com/pires/go-proxyproto"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
)

// secure starts a TCPSSL listener with a default and two additional certificates.
func (w *nlbWorld) secure(change func(*cloud.NLBListener)) *cloud.NLBListener {
	w.t.Helper()
	w.store.Update(func() {
		for id, names := range map[string][]string{"main": {"main.test"}, "wild": {"*.extra.test"}, "exact": {"exact.test", "www.extra.test"}} {
			w.store.Certificates.Add(&cloud.Certificate{Object: cloud.Object{ID: id, Seq: int64(len(id))}, CommonName: names[0], SANs: names[1:]})
		}
	})
	return w.open("TCPSSL", 443, func(l *cloud.NLBListener) {
		l.Certificates, l.AdditionalCertificates, l.SecurityPolicy = []string{"main"}, []string{"wild", "exact"}, "tls_cipher_policy_1_2"
		if change != nil {
			change(l)
		}
	})
}

func dialSecure(t *testing.T, where string, config *tls.Config) (*tls.Conn, error) {
	t.Helper()
	config.InsecureSkipVerify = true // the test looks at what is offered
	raw, err := dialTo(t, "", where)
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { _ = raw.Close() })
	c := tls.Client(raw, config)
	return c, c.HandshakeContext(t.Context())
}

func TestNLBEndsTLS(t *testing.T) {
	t.Parallel()
	w := newNLBWorld(t)
	one := newServer(t, "one", w.machine("i-a", "10.1.50.1"))
	w.servers(ecsServer("i-a", one.port(), 100))
	l := w.secure(nil)
	for name, want := range map[string]string{
		"main.test": "main.test", "a.extra.test": "*.extra.test", "www.extra.test": "exact.test", "exact.test": "exact.test",
		"other.test": "main.test", "": "main.test",
	} {
		c := testkit.Must(dialSecure(t, w.at(l), &tls.Config{ServerName: name}))(t)
		wantEqual(t, name, c.ConnectionState().PeerCertificates[0].Subject.CommonName, want)
		wantEqual(t, "the backend server speaks without TLS", testkit.Must(read(c))(t), "one")
		_ = testkit.Must(c.Write([]byte("x")))(t)
		wantEqual(t, "both ways", testkit.Must(read(c))(t), "x")
	}
	if _, err := dialSecure(t, w.at(l), &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}); err == nil {
		t.Error("the policy's lowest version is not enforced")
	}
	w.machine("i-client", "10.1.50.9")
	inside := testkit.Must(w.Dial(t.Context(), "i-client", "tcp", vipB+":443"))(t)
	defer inside.Close()
	c := tls.Client(inside, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // the test looks at what is offered
	if err := c.HandshakeContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantEqual(t, "from a machine", testkit.Must(read(c))(t), "one")
	w.change(func() {
		group := &cloud.SecurityGroup{Object: w.store.NewObject("sg"), Rules: []cloud.SecurityRule{rule("drop", "0.0.0.0/0", 100)}}
		w.store.SecurityGroups.Add(group)
		w.nlb.SecurityGroups = []string{group.ID}
	})
	if _, err := dialSecure(t, w.at(l), &tls.Config{}); err == nil {
		t.Error("a source that is not admitted gets as far as TLS")
	}
}

func TestNLBALPN(t *testing.T) {
	t.Parallel()
	w := newNLBWorld(t)
	one := newServer(t, "one", w.machine("i-a", "10.1.51.1"))
	w.servers(ecsServer("i-a", one.port(), 100))
	l := w.secure(func(l *cloud.NLBListener) { l.ALPNEnabled = true })
	both := []string{"http/1.1", "h2"}
	tests := []struct {
		policy  string
		offered []string
		want    string
	}{
		{"HTTP1Only", both, "http/1.1"}, {"HTTP2Only", both, "h2"}, {"HTTP2Optional", both, "http/1.1"}, {"HTTP2Preferred", both, "h2"},
		{"HTTP2Optional", []string{"h2"}, "h2"}, {"HTTP1Only", nil, ""}, {"HTTP2Only", []string{"http/1.1"}, ""},
		{"HTTP1Only", []string{"h2"}, "refused"},
	}
	for _, test := range tests {
		w.change(func() { l.ALPNPolicy = test.policy })
		c, err := dialSecure(t, w.at(l), &tls.Config{NextProtos: test.offered})
		got := "refused"
		if err == nil {
			got = c.ConnectionState().NegotiatedProtocol
		}
		wantEqual(t, test.policy, got, test.want)
	}
	w.change(func() { l.ALPNEnabled = false })
	c := testkit.Must(dialSecure(t, w.at(l), &tls.Config{NextProtos: both}))(t)
	wantEqual(t, "off", c.ConnectionState().NegotiatedProtocol, "")
}

// newAuthority makes an authority that is its own client certificate.
func newAuthority(t *testing.T) (certificate tls.Certificate, text string) {
	t.Helper()
	key := testkit.Must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "clients"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour),
		IsCA:     true, BasicConstraintsValid: true, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der := testkit.Must(x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key))(t)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key},
		string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

func TestNLBVerifiesClients(t *testing.T) {
	t.Parallel()
	w := newNLBWorld(t)
	one := newServer(t, "one", w.machine("i-a", "10.1.52.1"))
	w.servers(ecsServer("i-a", one.port(), 100))
	known, text := newAuthority(t)
	unknown, _ := newAuthority(t)
	w.store.Update(func() {
		w.store.Certificates.Add(&cloud.Certificate{Object: w.store.NewObject("ca"), CA: true, CertificatePEM: text})
	})
	ca := w.store.Certificates.Select(func(c *cloud.Certificate) bool { return c.CA })[0].ID
	l := w.secure(func(l *cloud.NLBListener) { l.CAEnabled, l.CAs = true, []string{ca} })
	for name, certificates := range map[string][]tls.Certificate{"known": {known}, "unknown": {unknown}, "none": nil} {
		c, err := dialSecure(t, w.at(l), &tls.Config{Certificates: certificates})
		if err == nil {
			_, err = read(c)
		}
		wantEqual(t, name, err == nil, name == "known")
	}
}

func TestNLBProxyProtocolBehindTLS(t *testing.T) {
	t.Parallel()
	w := newNLBWorld(t)
	socket := listenOn(t, "tcp", w.machine("i-a", "10.1.53.1"))
	defer socket.Close()
	w.servers(ecsServer("i-a", socket.Addr().(*net.TCPAddr).Port, 100))
	l := w.secure(func(l *cloud.NLBListener) { l.ProxyProtocol = true })
	c := testkit.Must(dialSecure(t, w.at(l), &tls.Config{}))(t)
	_ = testkit.Must(c.Write([]byte("payload")))(t)
	behind := proxyproto.NewConn(testkit.Must(socket.Accept())(t))
	defer behind.Close()
	wantEqual(t, "payload", testkit.Must(read(behind))(t), "payload")
	wantEqual(t, "destination", behind.ProxyHeader().DestinationAddr.String(), vipA+":443")
}
