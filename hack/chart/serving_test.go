package chart

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestServingCertificate reads metrics as the ServiceMonitor says where the certificate is given: verified, by its name.
func TestServingCertificate(t *testing.T) {
	t.Parallel()
	s := newSandbox(t, helm4)
	certificate, key := selfSigned(t, "cloud-controller-manager")
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "ccm-tls"}, Type: corev1.SecretTypeTLS,
		Data: map[string][]byte{"tls.crt": certificate, "tls.key": key, "ca.crt": certificate},
	}
	if _, err := s.client.CoreV1().Secrets(system).Create(s.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	s.must("kubectl create namespace monitoring && kubectl -n monitoring create serviceaccount prometheus")
	s.must("deploy/cloud-config.sh --region cn-hangzhou", "ACCESS_KEY_ID=emulator", "ACCESS_KEY_SECRET=emulator-secret", "VPC_ID=vpc-emulator")
	s.must("helm install " + release + s.emulated() + " --wait --timeout 2m --set serving.tlsSecretName=ccm-tls" +
		" --set metrics.readers[0].name=prometheus,metrics.readers[0].namespace=monitoring")
	c := s.container(system, s.deployment().Spec.Template.Spec)
	c.start()

	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(certificate)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: "cloud-controller-manager"}}}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, fmt.Sprintf("https://127.0.0.1:%d/metrics", c.port), nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+s.token("monitoring", "prometheus"))
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Errorf("metrics: %s", response.Status)
	}
}

// selfSigned returns a certificate for a name, and its key, in PEM.
func selfSigned(t *testing.T, name string) (certificate, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{name}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
}
