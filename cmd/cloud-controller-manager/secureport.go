package main

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

	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/cloud-provider/app/config"
	"k8s.io/cloud-provider/options"
)

// securePort is --secure-port. The stock options would make six RSA keys at each start, which take more processor time than all else: two
// for this port, two for webhooks, of which there are none, and two with which a server would call itself. So they see no port.
type securePort struct {
	opts *options.CloudControllerManagerOptions
	port int
}

// take keeps the ports from the stock options. What is wrong with them, those report.
func (s *securePort) take() {
	if serving := s.opts.SecureServing; len(serving.Validate()) == 0 {
		s.port, serving.BindPort = serving.BindPort, 0
	}
	if webhooks := s.opts.WebhookServing; len(webhooks.Validate()) == 0 && len(s.opts.Webhook.Webhooks) == 0 {
		webhooks.BindPort = 0
	}
}

// listen has the port in the configuration as the stock options would, with an ECDSA key where no flag names a certificate.
func (s *securePort) listen(completed *config.CompletedConfig) error {
	if s.port == 0 {
		return nil
	}
	serving := *s.opts.SecureServing.SecureServingOptions
	serving.BindPort = s.port
	if cert := &serving.ServerCert; cert.CertDirectory == "" && cert.CertKey.CertFile == "" && cert.CertKey.KeyFile == "" {
		certificate, key, err := selfSigned(serving.BindAddress)
		if err != nil {
			return fmt.Errorf("make a certificate: %w", err)
		}
		if cert.GeneratedCert, err = dynamiccertificates.NewStaticCertKeyContent("self-signed", certificate, key); err != nil {
			return err
		}
	} else if err := serving.MaybeDefaultWithSelfSignedCerts("localhost", nil, []net.IP{net.IPv4(127, 0, 0, 1)}); err != nil {
		return fmt.Errorf("make a certificate: %w", err)
	}
	if err := serving.ApplyTo(&completed.SecureServing); err != nil {
		return err
	}
	if err := s.opts.Authentication.ApplyTo(&completed.Authentication, completed.SecureServing, nil); err != nil {
		return err
	}
	return s.opts.Authorization.ApplyTo(&completed.Authorization)
}

// certificateLife is how long the stock certificate is valid.
const certificateLife = 365 * 24 * time.Hour

// selfSigned returns a certificate for localhost and an address, and its key.
func selfSigned(address net.IP) (certificate, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: fmt.Sprintf("localhost@%d", time.Now().Unix())},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(certificateLife), BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	if !address.IsUnspecified() {
		template.IPAddresses = append(template.IPAddresses, address)
	}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		return nil, nil, err
	}
	encoded, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		return nil, nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed}),
		pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: encoded}), nil
}
