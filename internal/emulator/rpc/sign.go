package rpc

import (
	"crypto/hmac"
	"crypto/sha1" //nolint:gosec // signature 1.0 is defined over SHA-1
	"encoding/base64"
	"net/url"
	"slices"
	"strings"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
)

// Escape encodes by RFC 3986, as signatures need it: form encoding, but a space is %20.
func Escape(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }

// StringToSign is the text that signature 1.0 covers: method, path and every parameter but the signature itself.
func StringToSign(method string, params api.Params) string {
	return method + "&%2F&" + Escape(canonical(params))
}

// Sign computes signature 1.0 (HMAC-SHA1) over params.
func Sign(secret, method string, params api.Params) string {
	mac := hmac.New(sha1.New, []byte(secret+"&"))
	mac.Write([]byte(StringToSign(method, params)))
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// canonical joins the parameters in key order.
func canonical(params api.Params) string {
	keys := make([]string, 0, len(params))
	for k := range params {
		if k != "Signature" {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	var b strings.Builder
	for i, k := range keys {
		if i > 0 {
			b.WriteByte('&')
		}
		b.WriteString(Escape(k))
		b.WriteByte('=')
		b.WriteString(Escape(params[k]))
	}
	return b.String()
}
