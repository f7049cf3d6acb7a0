package conformance

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aliyun/alibaba-cloud-sdk-go/sdk"
	"github.com/aliyun/alibaba-cloud-sdk-go/sdk/auth"
	"github.com/aliyun/alibaba-cloud-sdk-go/sdk/auth/credentials"
	sdkerrors "github.com/aliyun/alibaba-cloud-sdk-go/sdk/errors"
	"github.com/aliyun/alibaba-cloud-sdk-go/sdk/requests"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/rpc"
)

// Variant is a request that the SDK does not make.
type Variant string

// Variants of requests. The SDK makes those without one.
const (
	WrongSignature Variant = "wrong signature"
	NoSignature    Variant = "no signature"
	UnknownKey     Variant = "unknown key"
	OldTimestamp   Variant = "timestamp of 40 minutes ago"
	LateTimestamp  Variant = "timestamp of 25 minutes ago"
	UsedNonce      Variant = "used nonce"
	XML            Variant = "XML"
	ACS3           Variant = "ACS3-HMAC-SHA256"
	NoVersion      Variant = "unknown version"
	NoProduct      Variant = "unknown path"
	Unsigned       Variant = "unsigned"
	Put            Variant = "PUT"
	TooLarge       Variant = "2 MiB"
	DisabledKey    Variant = "disabled key"
	RestrictedKey  Variant = "key without permissions"
	TemporaryKey   Variant = "temporary key"
	NoToken        Variant = "temporary key without token"
	WrongToken     Variant = "temporary key with another token"
)

// Key is an access key.
type Key struct{ ID, Secret, Token string }

// answer is what came back.
type answer struct {
	status int
	code   string
	body   map[string]any
}

// caller makes calls of one account.
type caller struct {
	options Options
	client  *sdk.Client
	http    *http.Client
	// temporary is the key of the last AssumeRole.
	temporary Key
}

// connecting guards the construction of clients: the SDK fills its package-level endpoint maps without a lock.
var connecting sync.Mutex

func newCaller(o Options) (*caller, error) {
	connecting.Lock()
	defer connecting.Unlock()
	config := sdk.NewConfig().WithAutoRetry(false).WithScheme(o.scheme()).WithTimeout(time.Minute)
	if o.Transport != nil {
		config.Transport = o.Transport
	}
	var key auth.Credential = credentials.NewAccessKeyCredential(o.Key.ID, o.Key.Secret)
	if o.Key.Token != "" {
		key = credentials.NewStsTokenCredential(o.Key.ID, o.Key.Secret, o.Key.Token)
	}
	client, err := sdk.NewClientWithOptions(o.Environment.Region, config, key)
	if err != nil {
		return nil, fmt.Errorf("make the client: %w", err)
	}
	return &caller{options: o, client: client, http: &http.Client{Transport: o.Transport, Timeout: time.Minute}}, nil
}

func (o Options) scheme() string {
	if o.PlainHTTP {
		return "HTTP"
	}
	return "HTTPS"
}

// host is where a product is.
func (o Options) host(product string) string {
	if o.Endpoint != "" {
		return o.Endpoint
	}
	if product == "quotas" { // one for all regions
		return product + ".aliyuncs.com"
	}
	return product + "." + o.Environment.Region + ".aliyuncs.com"
}

// turn waits until the action may be called, and counts the call.
func (c *caller) turn(ctx context.Context, product, action string) error {
	if err := c.options.Pace.turn(ctx, product, action); err != nil {
		return err
	}
	if c.options.Count != nil {
		c.options.Count(product, action)
	}
	return nil
}

// call makes one call, not before its action may be called again.
func (c *caller) call(ctx context.Context, product, action string, variant Variant, parameters map[string]string) (answer, error) {
	if err := c.turn(ctx, product, action); err != nil {
		return answer{}, err
	}
	parameters = material(parameters)
	if variant != "" {
		return c.raw(ctx, product, action, variant, parameters)
	}
	r := requests.NewCommonRequest()
	r.Domain, r.Version, r.ApiName, r.Scheme, r.Method = c.options.host(product), api.VersionOf(product), action, c.options.scheme(), http.MethodPost
	r.Product = product
	r.QueryParams = parameters
	response, err := c.client.ProcessCommonRequest(r)
	var refused sdkerrors.Error
	if errors.As(err, &refused) && refused.HttpStatus() != 0 {
		return answer{status: refused.HttpStatus(), code: refused.ErrorCode()}, nil
	}
	if err != nil {
		return answer{}, fmt.Errorf("call %s %s: %w", product, action, withoutURL(err))
	}
	a, err := decode(response.GetHttpStatus(), response.GetHttpContentBytes())
	if product == "sts" && action == "AssumeRole" {
		text := func(name string) string { s, _ := at(a.body, "Credentials."+name).(string); return s }
		c.temporary = Key{text("AccessKeyId"), text("AccessKeySecret"), text("SecurityToken")}
	}
	return a, err
}

// withoutURL is the reason of an error of the transport: the URL of a request has its key, its signature and a temporary key's token.
func withoutURL(err error) error {
	if transport, ok := errors.AsType[*url.Error](err); ok {
		return transport.Err
	}
	return err
}

func decode(status int, body []byte) (answer, error) {
	a := answer{status: status}
	if err := json.Unmarshal(body, &a.body); err != nil {
		return a, fmt.Errorf("the answer is not a JSON object: %w", err)
	}
	if code, ok := a.body["Code"].(string); ok && status/100 != 2 {
		a.code, a.body = code, nil
	}
	return a, nil
}

// raw makes a request by hand. One with a used nonce is the second of two.
func (c *caller) raw(ctx context.Context, product, action string, variant Variant, parameters map[string]string) (answer, error) {
	if variant == ACS3 {
		return c.acs3(ctx, product, action, parameters)
	}
	key, method := c.keyOf(variant), http.MethodGet
	p := api.Params{
		"Action": action, "Version": api.VersionOf(product), "Format": "JSON", "AccessKeyId": key.ID, "SignatureMethod": "HMAC-SHA1",
		"SignatureVersion": "1.0",
		"SignatureNonce":   rand.Text(), "Timestamp": timestamp(0),
	}
	maps.Copy(p, parameters)
	maps.Copy(p, signedChange(variant))
	switch variant {
	case Put:
		method = http.MethodPut
	case TooLarge:
		method = http.MethodPost
	}
	if key.Token != "" {
		p["SecurityToken"] = key.Token
	}
	p["Signature"] = rpc.Sign(key.Secret, method, p)
	switch variant {
	case WrongSignature:
		p["Signature"] = "AAAA"
	case Unsigned:
		for _, name := range []string{"Signature", "AccessKeyId", "SignatureMethod", "SignatureVersion", "SignatureNonce"} {
			delete(p, name)
		}
	case UsedNonce:
		if _, err := c.send(ctx, product, method, variant, p); err != nil {
			return answer{}, err
		}
		if err := c.turn(ctx, product, action); err != nil {
			return answer{}, err
		}
	}
	return c.send(ctx, product, method, variant, p)
}

// signedChange are the parameters of a variant that its signature covers.
func signedChange(variant Variant) api.Params {
	switch variant {
	case OldTimestamp:
		return api.Params{"Timestamp": timestamp(40 * time.Minute)}
	case LateTimestamp:
		return api.Params{"Timestamp": timestamp(25 * time.Minute)}
	case XML:
		return api.Params{"Format": "XML"}
	case NoVersion:
		return api.Params{"Version": "1999-01-01"}
	case NoSignature:
		return api.Params{"SignatureMethod": "none"}
	}
	return nil
}

func (c *caller) keyOf(variant Variant) Key {
	switch variant {
	case UnknownKey:
		return Key{ID: "LTAIunknown0000000000000", Secret: "unknown"}
	case DisabledKey:
		return c.options.Environment.Disabled
	case RestrictedKey:
		return c.options.Environment.Restricted
	case TemporaryKey:
		return c.temporary
	case NoToken:
		return Key{ID: c.temporary.ID, Secret: c.temporary.Secret}
	case WrongToken:
		return Key{ID: c.temporary.ID, Secret: c.temporary.Secret, Token: "another"}
	}
	return c.options.Key
}

func timestamp(ago time.Duration) string {
	return time.Now().Add(-ago).UTC().Format("2006-01-02T15:04:05Z")
}

func (c *caller) send(ctx context.Context, product, method string, variant Variant, p api.Params) (answer, error) {
	query := url.Values{}
	for name, value := range p {
		query.Set(name, value)
	}
	target := url.URL{Scheme: strings.ToLower(c.options.scheme()), Host: c.options.host(product), Path: "/", RawQuery: query.Encode()}
	if variant == NoProduct {
		target.Path = "/none"
	}
	var body io.Reader = http.NoBody
	if variant == TooLarge {
		body = bytes.NewReader(make([]byte, 2<<20))
	}
	request, err := http.NewRequestWithContext(ctx, method, target.String(), body)
	if err != nil {
		return answer{}, fmt.Errorf("make a request: %w", err)
	}
	return c.receive(request, variant)
}

func (c *caller) receive(request *http.Request, variant Variant) (answer, error) {
	response, err := c.http.Do(request)
	if err != nil {
		return answer{}, fmt.Errorf("make a request: %w", withoutURL(err))
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return answer{}, fmt.Errorf("read the answer: %w", err)
	}
	switch {
	case variant == XML:
		var element struct{ XMLName xml.Name }
		_ = xml.Unmarshal(body, &element) // what is no XML has no root
		return answer{status: response.StatusCode, body: map[string]any{"root": element.XMLName.Local}}, nil
	case response.Header.Get("Content-Type") != "" && strings.Contains(response.Header.Get("Content-Type"), "xml"):
		var failure struct{ Code string }
		_ = xml.Unmarshal(body, &failure) // an answer that is neither has no code
		return answer{status: response.StatusCode, code: failure.Code}, nil
	}
	return decode(response.StatusCode, body)
}

// acs3 signs by headers, as the newer SDKs do.
func (c *caller) acs3(ctx context.Context, product, action string, parameters map[string]string) (answer, error) {
	query := url.Values{}
	for name, value := range parameters {
		query.Set(name, value)
	}
	target := url.URL{Scheme: strings.ToLower(c.options.scheme()), Host: c.options.host(product), Path: "/", RawQuery: query.Encode()}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, target.String(), http.NoBody)
	if err != nil {
		return answer{}, fmt.Errorf("make a request: %w", err)
	}
	sum := sha256.Sum256(nil)
	hash := hex.EncodeToString(sum[:])
	headers := map[string]string{
		"x-acs-action": action, "x-acs-version": api.VersionOf(product), "x-acs-date": timestamp(0), "x-acs-signature-nonce": rand.Text(),
		"x-acs-content-sha256": hash,
	}
	if c.options.Key.Token != "" {
		headers["x-acs-security-token"] = c.options.Key.Token
	}
	signed := append(slices.Collect(maps.Keys(headers)), "host")
	slices.Sort(signed)
	for name, value := range headers {
		request.Header.Set(name, value)
	}
	text := rpc.CanonicalRequest(http.MethodPost, "/", parameters, request.Header, target.Host, signed, hash)
	request.Header.Set("Authorization",
		"ACS3-HMAC-SHA256 Credential="+c.options.Key.ID+",SignedHeaders="+strings.Join(signed, ";")+",Signature="+rpc.Sign3(c.options.Key.Secret,
			text))
	return c.receive(request, ACS3)
}

// admin makes a request to the emulator's own API.
func (c *caller) admin(request *http.Request) ([]byte, error) {
	response, err := c.http.Do(request)
	if err != nil {
		return nil, fmt.Errorf("call the emulator: %w", err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode/100 != 2 {
		err = fmt.Errorf("%s %s: %d %s", request.Method, request.URL.Path, response.StatusCode, body)
	}
	return body, err
}
