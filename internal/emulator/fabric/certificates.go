package fabric

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

// tlsFacts are what a handshake needs from the store.
type tlsFacts struct {
	certificate   *cloud.Certificate
	certificateID string
	authorities   []*cloud.Certificate
	policy        string
	protocols     []string // for ALPN, the preferred one first
	verifyClient  bool
}

// tlsServer ends TLS as a listener is set at the time of each handshake.
func (f *Fabric) tlsServer(l cloud.ListenerID) *tls.Config {
	return &tls.Config{ //nolint:gosec // the listener's policy decides
		MinVersion:         tls.VersionTLS10,
		GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) { return f.tlsConfig(l, hello) },
	}
}

func (f *Fabric) tlsConfig(l cloud.ListenerID, hello *tls.ClientHelloInfo) (*tls.Config, error) {
	facts, ok := f.tlsFacts(l, hello.ServerName)
	if !ok {
		return nil, fmt.Errorf("listener %s of %s: %w", l, l.LoadBalancerID, net.ErrClosed)
	}
	pair, err := f.selfMade.pair(facts, hello.ServerName)
	if err != nil {
		return nil, fmt.Errorf("certificate %s: %w", facts.certificateID, err)
	}
	lowest, highest := tlsVersions(facts.policy)
	if l.ID != "" && len(facts.protocols) > 0 && len(hello.SupportedProtos) == 0 && !f.holds("network.nlb-alpn") {
		return nil, fmt.Errorf("listener %s of %s: the client offers no protocol", l, l.LoadBalancerID)
	}
	c := &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: lowest, MaxVersion: highest, NextProtos: facts.protocols} //nolint:gosec // the listener's policy decides
	if facts.verifyClient {
		c.ClientAuth, c.ClientCAs = tls.RequireAndVerifyClientCert, x509.NewCertPool()
		for _, authority := range facts.authorities {
			c.ClientCAs.AppendCertsFromPEM([]byte(authority.CertificatePEM))
		}
	}
	return c, nil
}

// tlsVersions are the lowest and highest TLS version of a cipher policy. Its cipher suites are left to Go, which offers
// none that the policies exclude.
func tlsVersions(policy string) (lowest, highest uint16) {
	switch policy {
	case "tls_cipher_policy_1_1":
		return tls.VersionTLS11, tls.VersionTLS12
	case "tls_cipher_policy_1_2", "tls_cipher_policy_1_2_strict":
		return tls.VersionTLS12, tls.VersionTLS12
	case "tls_cipher_policy_1_2_strict_with_1_3":
		return tls.VersionTLS12, tls.VersionTLS13
	default:
		return tls.VersionTLS10, tls.VersionTLS12
	}
}

// tlsFacts reads a listener for a handshake with a name.
func (f *Fabric) tlsFacts(l cloud.ListenerID, name string) (facts tlsFacts, ok bool) {
	f.store.View(func() {
		var authorities []string
		if l.ID == "" {
			facts, authorities, ok = f.tlsFactsOfCLB(l, name)
		} else {
			facts, authorities, ok = f.tlsFactsOfNLB(l, name)
		}
		facts.certificate, _ = f.store.Certificates.Get(facts.certificateID)
		for _, id := range authorities {
			if authority, known := f.store.Certificates.Get(id); known {
				facts.authorities = append(facts.authorities, authority)
			}
		}
	})
	return facts, ok
}

// tlsFactsOfCLB reads an HTTPS listener; the domain extension of the name comes before the listener's certificate.
func (f *Fabric) tlsFactsOfCLB(id cloud.ListenerID, name string) (facts tlsFacts, authorities []string, ok bool) {
	lb, ok := f.store.LoadBalancers.Get(id.LoadBalancerID)
	if !ok {
		return facts, nil, false
	}
	l, ok := lb.Listeners[id.ListenerKey]
	if !ok {
		return facts, nil, false
	}
	a := attributes(l.Attributes)
	facts = tlsFacts{
		certificateID: a["ServerCertificateId"], policy: a["TLSCipherPolicy"], protocols: []string{"http/1.1"},
		verifyClient: a["CACertificateId"] != "",
	}
	if a.on("EnableHttp2") {
		facts.protocols = []string{"h2", "http/1.1"}
	}
	for x := range f.store.Extensions.All() {
		if x.LoadBalancerID == id.LoadBalancerID && x.ListenerPort == id.Port && covers(x.Domain, name) {
			facts.certificateID = x.CertificateID
		}
	}
	return facts, []string{a["CACertificateId"]}, true
}

// alpn are the protocols that the policies of TCPSSL listeners offer, the preferred one first (their order is assumed).
var alpn = map[string][]string{
	"HTTP1Only": {"http/1.1", "http/1.0"}, "HTTP2Only": {"h2"},
	"HTTP2Optional": {"http/1.1", "http/1.0", "h2"}, "HTTP2Preferred": {"h2", "http/1.1", "http/1.0"},
}

// tlsFactsOfNLB reads a TCPSSL listener; an additional certificate that names the client's server comes before the default one.
func (f *Fabric) tlsFactsOfNLB(id cloud.ListenerID, name string) (facts tlsFacts, authorities []string, ok bool) {
	l, ok := f.store.NLBListeners.Get(id.ID)
	if !ok || len(l.Certificates) == 0 {
		return facts, nil, false
	}
	facts = tlsFacts{certificateID: l.Certificates[0], policy: l.SecurityPolicy, verifyClient: l.CAEnabled}
	if l.ALPNEnabled {
		facts.protocols = f.protocolsOf(l.ALPNPolicy)
	}
	if len(l.AdditionalCertificates) > 0 {
		facts.certificateID = f.certificateOf(l, name)
	}
	return facts, l.CAs, facts.certificateID != ""
}

// protocolsOf are the protocols that a policy of ALPN offers.
func (f *Fabric) protocolsOf(policy string) []string {
	if !f.holds("network.nlb-alpn") {
		policy = cloud.OrDefault(map[string]string{"HTTP2Optional": "HTTP2Preferred", "HTTP2Preferred": "HTTP2Optional"}[policy], policy)
	}
	return alpn[policy]
}

// certificateOf is the certificate for a name: the best fit, and the default one if none fits. Flipped, the first fit, and none.
func (f *Fabric) certificateOf(l *cloud.NLBListener, name string) string {
	holds := f.holds("network.nlb-sni")
	chosen, best := "", 0
	if holds {
		chosen = l.Certificates[0]
	}
	for _, id := range append([]string{l.Certificates[0]}, l.AdditionalCertificates...) {
		c, known := f.store.Certificates.Get(id)
		if !known {
			continue
		}
		if fit := fitOf(c, name); fit > best && (holds || best == 0) {
			chosen, best = id, fit
		}
	}
	return chosen
}

// fitOf is 2 for a certificate that has a name, 1 for one that covers it by a wildcard, else 0.
func fitOf(c *cloud.Certificate, name string) int {
	fit := 0
	for _, domain := range append([]string{c.CommonName}, c.SANs...) {
		switch {
		case name == "" || !covers(domain, name):
		case strings.HasPrefix(domain, "*"):
			fit = max(fit, 1)
		default:
			return 2
		}
	}
	return fit
}

// covers reports whether a domain, which may begin with "*.", covers a name.
func covers(domain, name string) bool {
	if suffix, wild := strings.CutPrefix(domain, "*"); wild {
		host, rest, found := strings.Cut(name, ".")
		return found && host != "" && "."+rest == suffix
	}
	return strings.EqualFold(domain, name)
}

// selfMade are key pairs for certificates that are known by id only. The zero value is ready.
type selfMade struct {
	mu    sync.Mutex
	pairs map[string]tls.Certificate // by certificate id; guarded by mu
}

// pair is the certificate's own key pair, or a self-signed one when it has no key material.
func (s *selfMade) pair(facts tlsFacts, name string) (tls.Certificate, error) {
	if c := facts.certificate; c != nil && c.PrivateKeyPEM != "" {
		return tls.X509KeyPair([]byte(c.CertificatePEM), []byte(c.PrivateKeyPEM))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if pair, ok := s.pairs[facts.certificateID]; ok {
		return pair, nil
	}
	if c := facts.certificate; c != nil && c.CommonName != "" {
		name = c.CommonName
	}
	pair, err := newPair(cloud.OrDefault(name, "emulator.test"))
	if err != nil {
		return pair, err
	}
	if s.pairs == nil {
		s.pairs = map[string]tls.Certificate{}
	}
	s.pairs[facts.certificateID] = pair
	return pair, nil
}

// pairLife is how long a self-made certificate is valid: longer than any emulator runs.
const pairLife = 365 * 24 * time.Hour

func newPair(name string) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("make a key: %w", err)
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(pairLife),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("sign a certificate: %w", err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}
