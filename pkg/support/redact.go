package support

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// Redacted stands in the place of a secret.
const Redacted = "[redacted]"

// userInfo is the user and password of a URL. A password may have an @ of its own, or a quote.
var userInfo = regexp.MustCompile(`://[^/?#\s"]+@`)

// Redactor takes secrets out of texts.
type Redactor struct{ spellings *strings.Replacer }

// NewRedactor returns a redactor of these secrets in each form in which texts have them: as they are, in JSON, in URLs, and in base64, as
// the cloud-config and Secrets have them. Empty ones are left out. Users and passwords in URLs are taken out, too.
func NewRedactor(secrets ...string) *Redactor {
	var spellings []string
	for _, secret := range secrets {
		if secret != "" {
			spellings = append(spellings, formsOf(secret)...)
		}
	}
	// The replacer takes the first that fits: a secret that begins with another one goes first.
	slices.SortFunc(spellings, func(a, b string) int { return len(b) - len(a) })
	var pairs []string
	for _, spelling := range slices.Compact(spellings) {
		pairs = append(pairs, spelling, Redacted)
	}
	return &Redactor{strings.NewReplacer(pairs...)}
}

func formsOf(secret string) []string {
	forms := []string{secret, url.QueryEscape(secret), url.PathEscape(secret), strings.ReplaceAll(url.QueryEscape(secret), "+", "%20")}
	for _, encoding := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
		forms = append(forms, encoding.EncodeToString([]byte(secret)))
	}
	if quoted, err := json.Marshal(secret); err == nil {
		forms = append(forms, strings.Trim(string(quoted), `"`))
	}
	return append(forms, strings.Trim(strings.TrimSpace(jsonUnescaped(secret)), `"`))
}

// jsonUnescaped is the JSON of encoders that leave <, > and & alone.
func jsonUnescaped(secret string) string {
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(secret) // a string and a builder do not fail
	return text.String()
}

// Text returns the text without the secrets.
func (r *Redactor) Text(text string) string {
	return userInfo.ReplaceAllString(r.spellings.Replace(text), "://"+Redacted+"@")
}
