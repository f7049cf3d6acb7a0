package rpc

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// FuzzRead checks that no request makes the parser fail otherwise than with an answer of the cloud, and that what it
// accepted can be verified and answered.
func FuzzRead(f *testing.F) {
	f.Add("POST", "Action=DescribeVpcs&Version=2016-04-28", "a=b", "application/x-www-form-urlencoded", "")
	f.Add("GET", "Action=%zz", "", "", "ACS3-HMAC-SHA256 Credential=a,SignedHeaders=host,Signature=b")
	f.Add("GET", "Tag.1.Key=a&Tag.1.Key=b;c", "%", "text/plain; charset", "ACS3-HMAC-SHA256 ,=;")
	verifier := newVerifier()
	f.Fuzz(func(t *testing.T, method, query, body, contentType, authorization string) {
		r := httptest.NewRequest(http.MethodGet, "/", strings.NewReader(body))
		r.Method, r.URL.RawQuery = method, query
		r.Header.Set("Content-Type", contentType)
		r.Header.Set("Authorization", authorization)
		request, bad := Read(r)
		if bad != nil {
			if bad.Status < 400 || bad.Code == "" {
				t.Errorf("refused with %v", bad)
			}
			return
		}
		if _, bad := verifier.Verify(request, time.Now()); bad == nil {
			t.Error("a request without a valid signature was accepted")
		}
		Failure(missing, "id", "host", request.Format())
	})
}

// FuzzSign checks that a request that is signed by the rules is accepted, whatever its parameters hold, and that a change
// is not.
func FuzzSign(f *testing.F) {
	f.Add("Name", "a b+c*~/é")
	f.Add("Tag.1.Key", "")
	f.Fuzz(func(t *testing.T, name, value string) {
		now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		request := &Request{Method: "POST", Path: "/", Params: map[string]string{
			"AccessKeyId": "testid", "SignatureMethod": "HMAC-SHA1", "SignatureVersion": "1.0", "SignatureNonce": "n",
			"Timestamp": "2026-01-01T00:00:00Z",
		}}
		if _, taken := request.Params[name]; taken || name == "Signature" || name == "SecurityToken" {
			return
		}
		request.Params[name] = value
		request.Params["Signature"] = Sign("YourAccessKeySecret", "POST", request.Params)
		if _, bad := newVerifier().Verify(request, now); bad != nil {
			t.Fatalf("a signed request is refused: %v", bad)
		}
		request.Params[name] = value + "x"
		if _, bad := newVerifier().Verify(request, now); bad == nil {
			t.Fatal("a changed request is accepted")
		}
	})
}
