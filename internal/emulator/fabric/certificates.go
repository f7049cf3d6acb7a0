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
	certificate         *cloud.Certificate
	certificateID       string
	authority           *cloud.Certificate
	policy              string
	http2, verifyClient bool
}

// tlsConfig answers a handshake as the HTTPS listener is set now.
func (w *web) tlsConfig(hello *tls.ClientHelloInfo) (*tls.Config, error) {
	facts, ok := w.fabric.tlsFacts(w.key, hello.ServerName)
	if !ok {
		return nil, fmt.Errorf("listener %s of %s: %w", w.key, w.key.lb, net.ErrClosed)
	}
	pair, err := w.fabric.selfMade.pair(facts, hello.ServerName)
	if err != nil {
		return nil, fmt.Errorf("certificate %s: %w", facts.certificateID, err)
	}
	lowest, highest := tlsVersions(facts.policy)
	c := &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: lowest, MaxVersion: highest, NextProtos: []string{"http/1.1"}} //nolint:gosec // the listener's policy decides
	if facts.http2 {
		c.NextProtos = []string{"h2", "http/1.1"}
	}
	if facts.verifyClient {
		c.ClientAuth, c.ClientCAs = tls.RequireAndVerifyClientCert, x509.NewCertPool()
		if facts.authority != nil {
			c.ClientCAs.AppendCertsFromPEM([]byte(facts.authority.CertificatePEM))
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

// tlsFacts reads a listener for a handshake; the domain extension of the name comes before the listener's certificate.
func (f *Fabric) tlsFacts(key socketKey, name string) (facts tlsFacts, ok bool) {
	f.store.View(func() {
		lb, known := f.store.LoadBalancers.Get(key.lb)
		if !known {
			return
		}
		l, known := lb.Listeners[key.ListenerKey]
		if !known {
			return
		}
		a := attributes(l.Attributes)
		id := a["ServerCertificateId"]
		for x := range f.store.Extensions.All() {
			if x.LoadBalancerID == key.lb && x.ListenerPort == key.Port && covers(x.Domain, name) {
				id = x.CertificateID
			}
		}
		facts = tlsFacts{
			certificateID: id, policy: a["TLSCipherPolicy"], http2: a.on("EnableHttp2"), verifyClient: a["CACertificateId"] != "",
		}
		facts.certificate, _ = f.store.Certificates.Get(id)
		facts.authority, _ = f.store.Certificates.Get(a["CACertificateId"])
		ok = true
	})
	return facts, ok
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
