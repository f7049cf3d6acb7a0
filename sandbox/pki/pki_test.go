package pki_test

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"testing"

	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/pki"
)

func TestIssuedPairServesTLS(t *testing.T) {
	t.Parallel()
	ca, err := pki.NewAuthority("test-ca")
	if err != nil {
		t.Fatal(err)
	}
	pair, err := ca.Issue(pki.Subject{
		CommonName: "server", Organization: []string{"group-a"},
		IPs: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"localhost"},
	})
	if err != nil {
		t.Fatal(err)
	}
	cert, err := tls.X509KeyPair(pair.Cert, pair.Key)
	if err != nil {
		t.Fatalf("the certificate and its key do not belong together: %v", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca.CertPEM()) {
		t.Fatal("the authority's certificate is no PEM")
	}
	for _, usage := range []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth} {
		_, err := cert.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: "127.0.0.1", KeyUsages: []x509.ExtKeyUsage{usage}})
		if err != nil {
			t.Errorf("verify for usage %v: %v", usage, err)
		}
	}
	if got := cert.Leaf.Subject.Organization; len(got) != 1 || got[0] != "group-a" {
		t.Errorf("organization is %v, want [group-a]", got)
	}
}

func TestAuthoritiesDoNotTrustEachOther(t *testing.T) {
	t.Parallel()
	mine, err := pki.NewAuthority("ca")
	if err != nil {
		t.Fatal(err)
	}
	other, err := pki.NewAuthority("ca")
	if err != nil {
		t.Fatal(err)
	}
	pair, err := other.Issue(pki.Subject{CommonName: "admin"})
	if err != nil {
		t.Fatal(err)
	}
	cert, err := tls.X509KeyPair(pair.Cert, pair.Key)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(mine.CertPEM())
	if _, err := cert.Leaf.Verify(x509.VerifyOptions{Roots: roots}); err == nil {
		t.Error("a certificate of another authority of the same name is accepted")
	}
}
