// Package rpc is the cloud's wire protocol: it reads requests of the RPC style, verifies their signatures and writes
// answers as JSON or XML. It knows neither actions nor resources.
package rpc

import (
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
)

// MaxBody bounds a request body. A certificate upload is the largest real one and stays far below.
const MaxBody = 1 << 20

// Request is one request as it arrived, before anything in it is believed.
type Request struct {
	Method string
	// Params are the parameters of query and body together; on a clash the query wins.
	Params api.Params
	// Query are the parameters of the query alone: ACS3 signs them apart from the body.
	Query  api.Params
	Header http.Header
	Host   string
	// Path is the path as it was requested. Signature 1.0 always covers /; ACS3 the path that the client knows, which is /
	// for a client that was given the prefix as a part of its endpoint.
	Path string
	// Product is the path prefix (slb, vpc, ecs, sts), or "" at the root.
	Product string
	Body    []byte
}

// Read parses an HTTP request. The path is / or one product prefix.
func Read(r *http.Request) (*Request, *api.Error) {
	if r.Method != http.MethodGet && r.Method != http.MethodPost {
		return nil, api.Errorf(http.StatusMethodNotAllowed, "UnsupportedHTTPMethod", "This http method is not supported: %s.", r.Method)
	}
	product := strings.Trim(r.URL.Path, "/")
	if strings.Contains(product, "/") {
		return nil, api.NotFound("InvalidAction.NotFound", "No API is served at the path %s.", r.URL.Path)
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, MaxBody+1))
	if err != nil {
		return nil, api.BadRequest("InvalidParameter", "The body cannot be read.")
	}
	if len(body) > MaxBody {
		return nil, api.Errorf(http.StatusRequestEntityTooLarge, "InvalidParameter", "The body is larger than %d bytes.", MaxBody)
	}
	query, bad := flatten(r.URL.RawQuery, "query")
	if bad != nil {
		return nil, bad
	}
	req := &Request{
		Method: r.Method, Query: query, Header: r.Header, Host: r.Host, Path: r.URL.Path, Product: product, Body: body,
	}
	req.Params, bad = req.merge()
	return req, bad
}

// merge adds the form body to the query.
func (r *Request) merge() (api.Params, *api.Error) {
	params := make(api.Params, len(r.Query))
	if len(r.Body) > 0 && isForm(r.Header.Get("Content-Type")) {
		form, bad := flatten(string(r.Body), "body")
		if bad != nil {
			return nil, bad
		}
		params = form
	}
	maps.Copy(params, r.Query)
	return params, nil
}

func isForm(contentType string) bool {
	if contentType == "" {
		return true
	}
	media, _, err := mime.ParseMediaType(contentType)
	return err == nil && media == "application/x-www-form-urlencoded"
}

// flatten decodes form encoding. A parameter that is given twice is refused: which value was signed would be a guess.
func flatten(encoded, where string) (api.Params, *api.Error) {
	values, err := url.ParseQuery(encoded)
	if err != nil {
		return nil, api.BadRequest("InvalidParameter", "The %s is not form encoded.", where)
	}
	params := make(api.Params, len(values))
	for k, v := range values {
		if len(v) > 1 {
			return nil, api.BadRequest("InvalidParameter", "The parameter %s is given %d times in the %s.", k, len(v), where)
		}
		params[k] = v[0]
	}
	return params, nil
}

// V3 reports whether the request is signed with ACS3-HMAC-SHA256 headers instead of signature parameters.
func (r *Request) V3() bool { return r.Header.Get("Authorization") != "" }

// unsigned3 reports whether the request has the headers of ACS3 but no signature, as clients send actions that need none.
func (r *Request) unsigned3() bool {
	return r.Params["Action"] == "" && r.Header.Get("x-acs-action") != ""
}

// AccessKeyID is the access key that the request names, before its signature is verified; "" for one without a key.
func (r *Request) AccessKeyID() string {
	if !r.V3() {
		return r.Params["AccessKeyId"]
	}
	auth, bad := parseAuthorization(r.Header.Get("Authorization"))
	if bad != nil {
		return ""
	}
	return auth.AccessKeyID
}

// Action is the requested action: a parameter in signature 1.0, a header in ACS3.
func (r *Request) Action() string { return r.either("Action", "x-acs-action") }

// Version is the requested API version.
func (r *Request) Version() string { return r.either("Version", "x-acs-version") }

func (r *Request) either(param, header string) string {
	if v := r.Params[param]; v != "" {
		return v
	}
	return r.Header.Get(header)
}

// Format is the encoding of the answer. The protocol's default is XML; ACS3 clients negotiate nothing and get JSON.
func (r *Request) Format() Format {
	switch {
	case strings.EqualFold(r.Params["Format"], "json"):
		return JSON
	case r.Params["Format"] == "" && (r.V3() || r.unsigned3()):
		return JSON
	default:
		return XML
	}
}

// String names the request without its secrets.
func (r *Request) String() string {
	return fmt.Sprintf("%s %s/%s", r.Method, r.Product, r.Action())
}
