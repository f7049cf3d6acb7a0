package rpc

import (
	"crypto/hmac"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
)

// Key is an access key as the verifier sees it.
type Key struct {
	ID, Secret string
	// Token is the security token that a temporary key must present; "" for a lasting key.
	Token    string
	Expires  time.Time
	Disabled bool
}

// Statuses are the HTTP statuses about which published sources disagree.
type Statuses struct {
	InvalidAccessKey, SignatureMismatch int
}

// DefaultStatuses are the ones that the newer sources give.
var DefaultStatuses = Statuses{InvalidAccessKey: http.StatusNotFound, SignatureMismatch: http.StatusBadRequest}

// Verifier checks who sent a request, and that it is neither stale nor repeated. It is safe for concurrent use.
type Verifier struct {
	// Find returns the access key of an id.
	Find     func(id string) (Key, bool)
	Statuses Statuses
	nonces   Nonces
	// Ahead is how far the clock by which keys expire is ahead of that by which callers sign; nil means not at all.
	Ahead func() time.Duration
}

// Window is how far a request's timestamp may be from now, in both directions.
const Window = 31 * time.Minute

// Verify returns the access key id of an authentic request.
func (v *Verifier) Verify(r *Request, now time.Time) (string, *api.Error) {
	if r.V3() {
		return v.verify3(r, now)
	}
	return v.verify1(r, now)
}

func (v *Verifier) verify1(r *Request, now time.Time) (string, *api.Error) {
	p := r.Params
	for _, name := range []string{"AccessKeyId", "Signature", "SignatureNonce", "Timestamp", "SignatureMethod", "SignatureVersion"} {
		if p[name] == "" {
			return p["AccessKeyId"], api.Missing(name)
		}
	}
	if p["SignatureMethod"] != "HMAC-SHA1" || p["SignatureVersion"] != "1.0" {
		return p["AccessKeyId"], api.BadRequest("IncompleteSignature", "Only SignatureMethod HMAC-SHA1 with SignatureVersion 1.0 is supported.")
	}
	key, bad := v.key(p["AccessKeyId"], p["SecurityToken"], now)
	if bad != nil {
		return p["AccessKeyId"], bad
	}
	if want := Sign(key.Secret, r.Method, p); !equal(want, p["Signature"]) {
		return key.ID, v.mismatch(StringToSign(r.Method, p))
	}
	return key.ID, v.fresh(key.ID, p["SignatureNonce"], p["Timestamp"], now)
}

func (v *Verifier) verify3(r *Request, now time.Time) (string, *api.Error) {
	auth, bad := parseAuthorization(r.Header.Get("Authorization"))
	if bad != nil {
		return "", bad
	}
	if bad = mustBeSigned(r, auth.SignedHeaders); bad != nil {
		return auth.AccessKeyID, bad
	}
	key, bad := v.key(auth.AccessKeyID, r.Header.Get("x-acs-security-token"), now)
	if bad != nil {
		return auth.AccessKeyID, bad
	}
	hash := r.Header.Get("x-acs-content-sha256")
	if hash != digest(r.Body) {
		return key.ID, api.BadRequest("InvalidParameter", "The x-acs-content-sha256 header is not the digest of the body.")
	}
	text, ok := "", false
	for _, path := range []string{r.Path, "/"} {
		text = CanonicalRequest(r.Method, path, r.Query, r.Header, r.Host, auth.SignedHeaders, hash)
		ok = ok || equal(Sign3(key.Secret, text), auth.Signature)
	}
	if !ok {
		return key.ID, v.mismatch(stringToSign3(text))
	}
	return key.ID, v.fresh(key.ID, r.Header.Get("x-acs-signature-nonce"), r.Header.Get("x-acs-date"), now)
}

// mustBeSigned refuses a request some of whose protocol headers lie outside the signature.
func mustBeSigned(r *Request, signed []string) *api.Error {
	for _, name := range []string{"host", "x-acs-action", "x-acs-content-sha256", "x-acs-date", "x-acs-signature-nonce", "x-acs-version"} {
		if name != "host" && r.Header.Get(name) == "" {
			return api.Missing(name)
		}
		if !slices.Contains(signed, name) {
			return api.BadRequest("IncompleteSignature", "The header %s is not signed.", name)
		}
	}
	for name := range r.Header {
		lower := strings.ToLower(name)
		if strings.HasPrefix(lower, "x-acs-") && !slices.Contains(signed, lower) {
			return api.BadRequest("IncompleteSignature", "The header %s is not signed.", lower)
		}
	}
	return nil
}

func (v *Verifier) ahead() time.Duration {
	if v.Ahead == nil {
		return 0
	}
	return v.Ahead()
}

// key finds the caller's key and checks its state and token.
func (v *Verifier) key(id, token string, now time.Time) (Key, *api.Error) {
	key, ok := v.Find(id)
	switch {
	case !ok:
		return key, api.Errorf(v.Statuses.InvalidAccessKey, "InvalidAccessKeyId.NotFound", "Specified access key is not found.")
	case key.Disabled:
		return key, api.BadRequest("InvalidAccessKeyId.Inactive", "Specified access key is disabled.")
	case key.Token != "" && token == "":
		return key, api.BadRequest("MissingSecurityToken", "SecurityToken is mandatory for this action.")
	case key.Token != token:
		return key, api.BadRequest("InvalidSecurityToken.Malformed", "Specified SecurityToken is not the one of this access key.")
	case key.Token != "" && !now.Add(v.ahead()).Before(key.Expires):
		return key, api.Forbidden("InvalidSecurityToken.Expired", "Specified SecurityToken is expired.")
	}
	return key, nil
}

func (v *Verifier) mismatch(text string) *api.Error {
	return api.Errorf(v.Statuses.SignatureMismatch, "SignatureDoesNotMatch",
		"Specified signature is not matched with our calculation. server string to sign is:%s", text)
}

func (v *Verifier) fresh(keyID, nonce, timestamp string, now time.Time) *api.Error {
	at, err := time.Parse("2006-01-02T15:04:05Z", timestamp)
	if err != nil {
		return api.BadRequest("IllegalTimestamp", "The timestamp %q does not have the form YYYY-MM-DDThh:mm:ssZ.", timestamp)
	}
	if d := now.Sub(at); d > Window || d < -Window {
		return api.BadRequest("IllegalTimestamp", "The timestamp %s is more than %v away from the server's clock.", timestamp, Window)
	}
	if !v.nonces.Use(keyID+"\x00"+nonce, now) {
		return api.BadRequest("SignatureNonceUsed", "The request signature nonce has been used.")
	}
	return nil
}

// Age is how far a request's timestamp lies from a moment; 0 for one that cannot be read.
func (r *Request) Age(now time.Time) time.Duration {
	at, err := time.Parse("2006-01-02T15:04:05Z", r.either("Timestamp", "x-acs-date"))
	if err != nil {
		return 0
	}
	return now.Sub(at).Abs()
}

// equal compares in constant time, as one habit less to explain when somebody copies this code to a server.
func equal(a, b string) bool { return hmac.Equal([]byte(a), []byte(b)) }
