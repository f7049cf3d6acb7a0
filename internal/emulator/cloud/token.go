package cloud

import (
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
)

// Tokens remembers what calls with a ClientToken did, so that a repeated call returns the first result. The zero value is
// ready; the store's lock guards it.
type Tokens struct{ byKey map[string]remembered }

type remembered struct {
	fingerprint string
	result      any
	at          time.Time
}

// counts reports whether a token still does.
func (r remembered) counts(c *api.Call) bool {
	return c.Now.Before(r.at.Add(tokenLife)) || !c.Holds("common.token-life")
}

// tokenLife is how long a token is remembered. The cloud publishes no figure; a day is longer than any retry.
const tokenLife = 24 * time.Hour

// Once runs f, unless the caller's ClientToken was used before: then it returns the first result, or mismatch when the
// parameters differ. Failed calls are not remembered.
func (t *Tokens) Once(c *api.Call, mismatch *api.Error, f func() (any, error)) (any, error) {
	token := c.Str("ClientToken")
	if token == "" {
		return f()
	}
	key, parameters := c.Action.Name+"\x00"+token, fingerprint(c)
	if r, ok := t.byKey[key]; ok && r.counts(c) {
		if r.fingerprint != parameters {
			return nil, mismatch
		}
		if c.Holds("common.token-replay") {
			return r.result, nil
		}
	}
	result, err := f()
	if err != nil {
		return nil, err
	}
	if t.byKey == nil {
		t.byKey = map[string]remembered{}
	}
	t.byKey[key] = remembered{parameters, result, c.Now}
	return result, nil
}

// fingerprint joins the parameters that the action reads; the protocol's own (nonce, timestamp, signature) change with
// every retry and are not among them.
func fingerprint(c *api.Call) string {
	var out []byte
	for _, p := range c.Action.Params {
		switch p.Type {
		case api.Objects:
			for _, o := range c.Objects(p.Name) {
				for _, f := range p.Fields {
					out = append(append(append(out, f.Name...), '='), o[f.Name]...)
					out = append(out, 0)
				}
			}
		case api.Strings:
			for _, v := range c.List(p.Name) {
				out = append(append(append(out, p.Name...), '='), v...)
				out = append(out, 0)
			}
		default:
			out = append(append(append(out, p.Name...), '='), c.Str(p.Name)...)
			out = append(out, 0)
		}
	}
	return string(out)
}
