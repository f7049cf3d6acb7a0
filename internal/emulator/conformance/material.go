package conformance

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"strings"
	"sync"
	"time"
)

// Parameters with these values are made when the call is made, so that documents have neither keys nor tokens.
const (
	ownCertificate = "made: certificate"
	ownKey         = "made: key"
	otherKey       = "made: key of another certificate"
	goodToken      = "made: token"
	expiredToken   = "made: token that has expired"
	strangeToken   = "made: token for another audience"
	noToken        = "made: text that is no token"
)

// material returns the parameters with what has to be made.
func material(parameters map[string]string) map[string]string {
	out := make(map[string]string, len(parameters))
	for name, value := range parameters {
		if strings.HasPrefix(value, "made: ") {
			value = madeNow(value)
		}
		out[name] = value
	}
	return out
}

func madeNow(what string) string {
	switch what {
	case ownCertificate:
		return pairs()[0].certificate
	case ownKey:
		return pairs()[0].key
	case otherKey:
		return pairs()[1].key
	case noToken:
		return "no token"
	case expiredToken:
		return token("sts.aliyuncs.com", -time.Hour)
	case strangeToken:
		return token("another", time.Hour)
	}
	return token("sts.aliyuncs.com", time.Hour)
}

// token is one that no real provider accepts: its signature is not valid.
func token(audience string, life time.Duration) string {
	part := func(v any) string {
		data, err := json.Marshal(v)
		if err != nil {
			return ""
		}
		return base64.RawURLEncoding.EncodeToString(data)
	}
	return part(map[string]string{"alg": "RS256", "typ": "JWT"}) + "." + part(map[string]any{
		"iss": "https://conformance.invalid", "sub": "conformance", "aud": []string{audience}, "exp": time.Now().Add(life).Unix(),
	}) + ".AAAA"
}

type pair struct{ certificate, key string }

// pairs are two self-signed certificates with their keys.
var pairs = sync.OnceValue(func() [2]pair {
	return [2]pair{newPair(1, "conformance.example.com"), newPair(2, "conformance.example.com")}
})

// newPair makes a self-signed certificate for a name.
func newPair(serial int64, name string) pair {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err) // the source of random numbers of the system is broken
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC), NotAfter: time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		panic(err) // the template is constant
	}
	raw, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		panic(err) // the key was just made
	}
	return pair{
		string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: raw})),
	}
}
