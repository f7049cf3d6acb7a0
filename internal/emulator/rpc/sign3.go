package rpc

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"slices"
	"strings"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
)

// algorithm3 is the name of the header signature.
const algorithm3 = "ACS3-HMAC-SHA256"

// Authorization is the content of an ACS3 Authorization header.
type Authorization struct {
	AccessKeyID   string
	SignedHeaders []string
	Signature     string
}

// parseAuthorization reads "ACS3-HMAC-SHA256 Credential=...,SignedHeaders=a;b,Signature=...".
func parseAuthorization(value string) (Authorization, *api.Error) {
	incomplete := api.BadRequest("IncompleteSignature", "The Authorization header does not conform to %s.", algorithm3)
	algorithm, rest, ok := strings.Cut(value, " ")
	if !ok || algorithm != algorithm3 {
		return Authorization{}, incomplete
	}
	var a Authorization
	for part := range strings.SplitSeq(rest, ",") {
		name, v, _ := strings.Cut(strings.TrimSpace(part), "=")
		switch name {
		case "Credential":
			a.AccessKeyID = v
		case "SignedHeaders":
			a.SignedHeaders = strings.Split(v, ";")
		case "Signature":
			a.Signature = v
		}
	}
	if a.AccessKeyID == "" || a.Signature == "" || !slices.IsSorted(a.SignedHeaders) {
		return Authorization{}, incomplete
	}
	return a, nil
}

// CanonicalRequest is the text whose digest ACS3 signs.
func CanonicalRequest(method, path string, query api.Params, header http.Header, host string, signed []string, bodyHash string) string {
	var b strings.Builder
	b.WriteString(method + "\n" + path + "\n" + canonical(query) + "\n")
	for _, name := range signed {
		value := strings.TrimSpace(header.Get(name))
		if name == "host" {
			value = host
		}
		b.WriteString(name + ":" + value + "\n")
	}
	b.WriteString("\n" + strings.Join(signed, ";") + "\n" + bodyHash)
	return b.String()
}

// stringToSign3 is what the ACS3 key signs: the algorithm and the digest of the canonical request.
func stringToSign3(canonicalRequest string) string {
	return algorithm3 + "\n" + digest([]byte(canonicalRequest))
}

// Sign3 computes the ACS3 signature of a canonical request.
func Sign3(secret, canonicalRequest string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(stringToSign3(canonicalRequest)))
	return hex.EncodeToString(mac.Sum(nil))
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
