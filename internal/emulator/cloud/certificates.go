package cloud

import (
	"crypto/sha1" //nolint:gosec // the fingerprint that the cloud shows is SHA-1
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Certificate is a server certificate, or the certificate of an authority for client certificates.
type Certificate struct {
	Object
	Tagged
	Name, CommonName, Fingerprint string
	SANs                          []string
	Expires                       time.Time
	CA                            bool
	ResourceGroupID               string
	AliCloudID, AliCloudName      string
	CertificatePEM, PrivateKeyPEM string
}

// ErrKeyMismatch means that a certificate and its private key do not belong together or cannot be read.
var ErrKeyMismatch = errors.New("certificate and private key do not form a pair")

// ReadPEM fills in what the certificate says about itself. A server certificate needs its private key.
func (c *Certificate) ReadPEM(certificate, key string) error {
	c.CertificatePEM, c.PrivateKeyPEM = certificate, key
	if !c.CA {
		if _, err := tls.X509KeyPair([]byte(certificate), []byte(key)); err != nil {
			return fmt.Errorf("%w: %w", ErrKeyMismatch, err)
		}
	}
	block, _ := pem.Decode([]byte(certificate))
	if block == nil {
		return fmt.Errorf("%w: the certificate is not in PEM form", ErrKeyMismatch)
	}
	x, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrKeyMismatch, err)
	}
	sum := sha1.Sum(x.Raw) //nolint:gosec // the fingerprint that the cloud shows is SHA-1
	c.CommonName, c.SANs, c.Expires = x.Subject.CommonName, x.DNSNames, x.NotAfter
	c.Fingerprint = strings.TrimSuffix(colons(hex.EncodeToString(sum[:])), ":")
	return nil
}

// colons writes hex digits as aa:bb:cc.
func colons(digits string) string {
	var b strings.Builder
	for i := 0; i+1 < len(digits); i += 2 {
		b.WriteString(digits[i:i+2] + ":")
	}
	return b.String()
}

// DomainExtension gives an HTTPS listener another certificate for a domain.
type DomainExtension struct {
	Object
	LoadBalancerID        string
	ListenerPort          int
	Domain, CertificateID string
}

// ACL is an access control list of CLB.
type ACL struct {
	Object
	Tagged
	Name, IPVersion, ResourceGroupID string
	Entries                          []ACLEntry
}

// ACLEntry is one address block of an ACL, in CIDR form.
type ACLEntry struct{ CIDR, Comment string }

// Bound is a listener with the load balancer that it belongs to.
type Bound struct {
	LoadBalancer *LoadBalancer
	*Listener
}

// ListenersWithACL returns the listeners that refer to an ACL.
func (s *Store) ListenersWithACL(id string) []Bound {
	return s.listenersWhere(func(l *Listener) bool {
		for have := range strings.SplitSeq(l.Attributes["AclId"], ",") {
			if have == id {
				return true
			}
		}
		return false
	})
}

// ListenersWithCertificate returns the listeners that have a server certificate.
func (s *Store) ListenersWithCertificate(id string) []Bound {
	return s.listenersWhere(func(l *Listener) bool { return l.Attributes["ServerCertificateId"] == id })
}

func (s *Store) listenersWhere(keep func(*Listener) bool) []Bound {
	var found []Bound
	for lb := range s.LoadBalancers.All() {
		for _, l := range lb.SortedListeners() {
			if keep(l) {
				found = append(found, Bound{lb, l})
			}
		}
	}
	return found
}
