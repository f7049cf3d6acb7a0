package alicloud

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/aliyun/alibaba-cloud-sdk-go/sdk"
	"github.com/aliyun/alibaba-cloud-sdk-go/sdk/auth/credentials"
	sdkerrors "github.com/aliyun/alibaba-cloud-sdk-go/sdk/errors"
	"github.com/aliyun/alibaba-cloud-sdk-go/sdk/requests"
	"github.com/aliyun/alibaba-cloud-sdk-go/sdk/responses"
)

// noProxyOfSDK stands in for the proxy settings of the SDK, which have no effect with a transport of ours.
const noProxyOfSDK = "unused"

// defaultTimeout bounds one OpenAPI call, connection set-up included. Twenty seconds is what the official CCM waits; a
// shorter time turns slow but successful writes into ambiguous ones.
const defaultTimeout = 20 * time.Second

// Options configure a [Client].
type Options struct {
	// Region is the region id of every call, for example "cn-hangzhou". Required.
	Region string
	// Credentials supplies the keys that sign each call. Required.
	Credentials CredentialsProvider
	// Endpoints says where each product is reached. The zero value means the VPC endpoints of Region over HTTPS.
	Endpoints Endpoints
	// Timeout bounds one call. Default 20 s.
	Timeout time.Duration
	// Transport carries the calls. Default: [http.DefaultTransport] with the proxy settings of the environment.
	Transport http.RoundTripper
	// MaxBackendsPerCall bounds [Client.BackendsPerCall], 1 to 40. Default 40.
	MaxBackendsPerCall int
	// UserAgent is appended to the SDK's own.
	UserAgent string
	// Paused is asked before each write, which fails with [ErrPaused] while it says true. nil never pauses.
	Paused func() bool
}

// ErrPaused is what a write returns that was not made because [Options.Paused] said so.
var ErrPaused = errors.New("writing to the cloud is paused")

// Client calls the OpenAPI of one region. It is safe for concurrent use.
type Client struct {
	opts    Options
	limiter *limiter
	reach   reach
	// smallRoutePages remembers that the cloud refused the large page of route entries.
	smallRoutePages atomic.Bool
	// smallBackendCalls remembers that the cloud refused the larger number of backend servers in a call.
	smallBackendCalls atomic.Bool
	// smallServerCalls remembers the same of backend servers of NLB.
	smallServerCalls atomic.Bool
}

// New returns a client. It makes no call.
func New(opts Options) (*Client, error) {
	if opts.Region == "" {
		return nil, errors.New("region is empty")
	}
	if opts.Credentials == nil {
		return nil, errors.New("no credentials provider")
	}
	if opts.Timeout == 0 {
		opts.Timeout = defaultTimeout
	}
	if opts.MaxBackendsPerCall <= 0 || opts.MaxBackendsPerCall > largeBackendCall {
		opts.MaxBackendsPerCall = largeBackendCall
	}
	if opts.Transport == nil {
		opts.Transport = http.DefaultTransport
	}
	registerMetrics()
	observeSize(sizeBackends, opts.MaxBackendsPerCall)
	observeSize(sizeServers, largeServerCall)
	observeSize(sizeRoutePage, largeRoutePage)
	return &Client{opts: opts, limiter: newLimiter(publishedQuotas)}, nil
}

// Region returns the region id of every call.
func (c *Client) Region() string { return c.opts.Region }

// call runs one action and decodes its answer into out. It waits for the rate limit first, so ctx should allow for
// up to a minute where a product's window is used up.
//
// A read that got no answer is made a second time: the SDK's requests are POSTs, which the transport does not repeat when the
// other side closes an idle connection at the moment in which it is used again. A write is never repeated.
//
// A call whose key the cloud no longer knows is made a second time when the source of the keys has another one, because the
// cloud refused the call before it did anything.
func (c *Client) call(ctx context.Context, action string, p product, in params, out responses.AcsResponse) error {
	if c.opts.Paused != nil && !isRead(action) && c.opts.Paused() {
		return fmt.Errorf("%s: %w", action, ErrPaused)
	}
	keys, err := c.opts.Credentials.Credentials(ctx)
	if err != nil {
		c.reach.note(err)
		return fmt.Errorf("%s: %w", action, err)
	}
	err = c.attempt(ctx, action, p, keys, in, out)
	if isRead(action) && broke(err) {
		err = c.attempt(ctx, action, p, keys, in, out)
	}
	refresher, canRefresh := c.opts.Credentials.(Refresher)
	if !canRefresh || !hasCode(err, staleKeyCodes) {
		return err
	}
	fresh, refreshErr := refresher.Refresh(ctx, keys)
	switch {
	case refreshErr != nil:
		// Not wrapped: the call was made and refused, which is what the error has to count as.
		return fmt.Errorf("%w; there is no other key: %s", err, refreshErr.Error())
	case fresh.same(keys):
		return err
	}
	return c.attempt(ctx, action, p, fresh, in, out)
}

// attempt makes the call once.
func (c *Client) attempt(ctx context.Context, action string, p product, keys Credentials, in params, out responses.AcsResponse) error {
	operation := p.operation(action)
	if err := c.limiter.wait(ctx, operation); err != nil {
		return fmt.Errorf("%s: wait for the rate limit: %w", action, err)
	}
	start := time.Now()
	err := asError(action, c.send(ctx, action, p, keys, in, out))
	if refused, ok := errors.AsType[*Error](err); ok {
		refused.Product = p.host
	}
	observeCall(operation, err, time.Since(start))
	if p != productQuotas { // nothing depends on it, and a network may have no way to its endpoint
		c.reach.note(err)
	}
	if !isRead(action) {
		audit(ctx, operation, in, out, err)
	}
	if IsThrottled(err) {
		c.limiter.throttled(operation)
	}
	return err
}

// broke reports whether a connection ended before the answer came, or something else answered. A connection that could not be
// made, or on which the answer is too late, does not do better at once.
func broke(err error) bool {
	e, ok := asAPIError(err)
	if !ok || e.Code != "" || e.isBadRequest() || errors.Is(err, context.Canceled) {
		return false
	}
	var timeout net.Error
	var operation *net.OpError
	late := errors.As(err, &timeout) && timeout.Timeout()
	unreachable := errors.As(err, &operation) && operation.Op == "dial"
	return !late && !unreachable
}

// send makes a new SDK client for the one call. The SDK writes into its client and transport on every call, so a shared
// one would race; and its methods take no context, so the transport carries it.
func (c *Client) send(ctx context.Context, action string, p product, keys Credentials, in params, out responses.AcsResponse) error {
	config := sdk.NewConfig().WithTimeout(c.opts.Timeout).WithUserAgent(c.opts.UserAgent)
	config.MaxRetryTime = 0
	config.Transport = answerTransport{ctx: ctx, next: c.opts.Transport}
	config.Scheme = c.opts.Endpoints.scheme()

	credential := credentials.NewStsTokenCredential(keys.AccessKeyID, keys.AccessKeySecret, keys.SecurityToken)
	client := &sdk.Client{Domain: c.opts.Endpoints.host(p, c.opts.Region)}
	if err := client.InitWithOptions(c.opts.Region, config, credential); err != nil {
		return err
	}
	client.SetCloseTrace(true)
	// The SDK reads the proxy settings of the environment although they belong to the transport: it takes an item of NO_PROXY
	// for a regular expression, and fails every call where it is none.
	client.SetHttpProxy(noProxyOfSDK)
	client.SetHttpsProxy(noProxyOfSDK)
	client.SetNoProxy(noProxyOfSDK)

	request := &requests.RpcRequest{}
	request.InitWithApiInfo(p.name, p.version, action, "", "")
	request.Method = requests.POST
	request.SetReadTimeout(c.opts.Timeout)
	request.SetConnectTimeout(c.opts.Timeout)
	// The servers of one call of NLB have some 60 kB, too many for a URL.
	into := request.QueryParams
	if p == productNLB && !isRead(action) {
		into = request.FormParams
	}
	maps.Copy(into, in)
	return client.DoAction(request, out)
}

// asError turns what the SDK returns into an [Error]. It drops the URL of a failed request and the text of a signature
// mismatch: both hold the signed parameters, a temporary key's security token among them.
func asError(action string, err error) error {
	if err == nil {
		return nil
	}
	if server, ok := errors.AsType[*sdkerrors.ServerError](err); ok {
		return &Error{
			Action: action, Code: cloudText(server.ErrorCode()), Status: server.HttpStatus(),
			RequestID: cloudText(server.RequestId()), Message: cloudText(safeMessage(server.ErrorCode(), server.Message())),
		}
	}
	if transport, ok := errors.AsType[*url.Error](err); ok {
		err = transport.Err
	}
	failure := &Error{Action: action, err: err}
	if foreign, ok := errors.AsType[*foreignAnswerError](err); ok {
		failure.Status = foreign.status
	}
	return failure
}

func safeMessage(code, message string) string {
	if signatureCodes.Has(code) {
		return "the signature made with the access key secret is not the expected one"
	}
	return message
}
