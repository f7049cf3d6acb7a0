// Package pki makes the certificate authority, certificates and keys of one sandbox.
//
// Everything is made in memory and lives as long as the sandbox does. It is no general certificate tool: keys are always
// ECDSA P-256 and every certificate may serve both ends of a TLS connection.
package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"time"

	"k8s.io/client-go/util/keyutil"
)

const (
	// backdate covers clocks of client machines that run behind the one that issued the certificate.
	backdate = time.Hour
	// validity outlives any sandbox; nothing renews the certificates.
	validity = 365 * 24 * time.Hour
)

// Authority signs the certificates of one sandbox.
type Authority struct {
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
}

// Pair is a PEM-encoded certificate with its PEM-encoded private key.
type Pair struct {
	Cert, Key []byte
}

// Subject says whom a certificate is for. Kubernetes reads CommonName as the user name and Organization as the groups.
type Subject struct {
	CommonName   string
	Organization []string
	IPs          []net.IP
	DNSNames     []string
}

// NewAuthority makes a certificate authority with a fresh key.
func NewAuthority(commonName string) (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make the key of authority %s: %w", commonName, err)
	}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: commonName},
		NotBefore:             time.Now().Add(-backdate),
		NotAfter:              time.Now().Add(validity),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		IsCA:                  true,
		BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("sign authority %s: %w", commonName, err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("parse authority %s: %w", commonName, err)
	}
	return &Authority{key: key, cert: cert}, nil
}

// CertPEM is the authority's own certificate.
func (a *Authority) CertPEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})
}

// Issue signs a certificate for subject with a fresh key.
func (a *Authority) Issue(subject Subject) (Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, fmt.Errorf("make the key of %s: %w", subject.CommonName, err)
	}
	// 62 random bits: unique in practice and positive in every decoder.
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		return Pair{}, fmt.Errorf("draw a serial number for %s: %w", subject.CommonName, err)
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: subject.CommonName, Organization: subject.Organization},
		NotBefore:    time.Now().Add(-backdate),
		NotAfter:     a.cert.NotAfter,
		KeyUsage:     x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		IPAddresses:  subject.IPs,
		DNSNames:     subject.DNSNames,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return Pair{}, fmt.Errorf("sign the certificate of %s: %w", subject.CommonName, err)
	}
	keyPEM, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return Pair{}, fmt.Errorf("encode the key of %s: %w", subject.CommonName, err)
	}
	return Pair{Cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), Key: keyPEM}, nil
}

// SigningKey makes a PEM-encoded private key without a certificate, as ServiceAccount tokens are signed with.
func SigningKey() ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a signing key: %w", err)
	}
	keyPEM, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return nil, fmt.Errorf("encode a signing key: %w", err)
	}
	return keyPEM, nil
}
