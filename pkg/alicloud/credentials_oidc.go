package alicloud

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
)

const actionAssumeRoleWithOIDC = "AssumeRoleWithOIDC"

const (
	// oidcSession is the length of a session; every role admits it, longer ones only where it is set so.
	oidcSession = time.Hour
	// maxSTSAnswer bounds an answer; a real one has about 2 KiB.
	maxSTSAnswer = 64 << 10
)

// Lengths of an OIDC token that STS accepts:
// https://www.alibabacloud.com/help/en/ram/developer-reference/api-sts-2015-04-01-assumerolewithoidc.
const (
	minOIDCToken = 4
	maxOIDCToken = 20000
)

// OIDCOptions configure [NewOIDCCredentials]: a RAM role that trusts the tokens of this cluster's service accounts (RRSA).
type OIDCOptions struct {
	// RoleARN is the role's name, "acs:ram::<account>:role/<role>". Required.
	RoleARN string
	// ProviderARN is the registered issuer, "acs:ram::<account>:oidc-provider/<name>". Required.
	ProviderARN string
	// TokenFile is the projected service account token. It is read again for each session, because the kubelet replaces it.
	// Required.
	TokenFile string
	// SessionName shows in the cloud's audit log: 2 to 32 letters, digits and .@_-. Required.
	SessionName string
	// Region and Endpoints say where STS is reached. Region is required unless Endpoints.STS is set.
	Region    string
	Endpoints Endpoints
	// Timeout bounds one call. Default 20 s.
	Timeout time.Duration
	// Transport carries the calls. Default: [http.DefaultTransport].
	Transport http.RoundTripper
}

// NewOIDCCredentials returns the temporary keys of a role that is assumed with a service account token.
func NewOIDCCredentials(opts OIDCOptions) *TemporaryCredentials {
	if opts.Timeout == 0 {
		opts.Timeout = defaultTimeout
	}
	client := &http.Client{
		Timeout: opts.Timeout, Transport: opts.Transport,
		// Over its quota STS may answer with a bare redirect; following it would carry the token elsewhere.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	source := oidcSource{opts: opts, client: client}
	return newTemporaryCredentials("RAM role "+opts.RoleARN+" by OIDC", source.assume)
}

type oidcSource struct {
	opts   OIDCOptions
	client *http.Client
}

// assume makes the call itself: it is the one that carries neither key nor signature, which the SDK cannot send.
func (s oidcSource) assume(ctx context.Context) (Credentials, error) {
	token, err := readToken(s.opts.TokenFile)
	if err != nil {
		return Credentials{}, err
	}
	form := url.Values{
		"RoleArn": {s.opts.RoleARN}, "OIDCProviderArn": {s.opts.ProviderARN}, "OIDCToken": {token},
		"RoleSessionName": {s.opts.SessionName}, "DurationSeconds": {strconv.Itoa(int(oidcSession.Seconds()))},
	}
	start := time.Now()
	keys, err := s.post(ctx, form)
	observeCall(actionAssumeRoleWithOIDC, err, time.Since(start))
	return keys, err
}

func (s oidcSource) post(ctx context.Context, form url.Values) (Credentials, error) {
	query := url.Values{
		"Action": {actionAssumeRoleWithOIDC}, "Version": {productSTS.version}, "Format": {"JSON"},
		"Timestamp": {time.Now().UTC().Format(time.RFC3339)},
	}
	target := url.URL{
		Scheme: strings.ToLower(s.opts.Endpoints.scheme()), Host: s.opts.Endpoints.host(productSTS, s.opts.Region), Path: "/",
		RawQuery: query.Encode(),
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, target.String(), strings.NewReader(form.Encode()))
	if err != nil {
		return Credentials{}, asError(actionAssumeRoleWithOIDC, err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	response, err := s.client.Do(request)
	if err != nil {
		return Credentials{}, asError(actionAssumeRoleWithOIDC, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxSTSAnswer))
	if err != nil {
		return Credentials{}, asError(actionAssumeRoleWithOIDC, err)
	}
	return parseSTSAnswer(response.StatusCode, body)
}

// stsAnswer is the answer of STS, good or bad.
type stsAnswer struct {
	RequestID   string `json:"RequestId"`
	Code        string
	Message     string
	Credentials struct {
		AccessKeyID     string `json:"AccessKeyId"`
		AccessKeySecret string
		SecurityToken   string
		Expiration      time.Time
	}
}

// parseSTSAnswer never puts the body into an error: it may hold keys.
func parseSTSAnswer(status int, body []byte) (Credentials, error) {
	var answer stsAnswer
	decodeErr := json.Unmarshal(body, &answer)
	failure := &Error{
		Action: actionAssumeRoleWithOIDC, Code: cloudText(answer.Code), Status: status, RequestID: cloudText(answer.RequestID),
		Message: cloudText(answer.Message),
	}
	got := answer.Credentials
	switch {
	case status == http.StatusFound:
		failure.Code, failure.Message = "Throttling", "STS answered with a redirect, as it does when its quota is exceeded"
		return Credentials{}, failure
	case status != http.StatusOK && answer.Code != "":
		return Credentials{}, failure
	case status != http.StatusOK || decodeErr != nil:
		failure.Code, failure.err = "", fmt.Errorf("HTTP status %d with a body that is no answer of STS", status)
		return Credentials{}, failure
	case got.AccessKeyID == "" || got.AccessKeySecret == "" || got.SecurityToken == "" || got.Expiration.IsZero():
		failure.Code, failure.err = "", errors.New("the answer lacks a part of the keys")
		return Credentials{}, failure
	}
	return Credentials{
		AccessKeyID: got.AccessKeyID, AccessKeySecret: got.AccessKeySecret, SecurityToken: got.SecurityToken, Expiration: got.Expiration,
	}, nil
}

// readToken checks what STS would refuse without saying which file is meant.
func readToken(path string) (string, error) {
	content, err := os.ReadFile(path)
	if reason, ok := errors.AsType[*fs.PathError](err); ok {
		err = reason.Err
	}
	if err != nil {
		return "", fmt.Errorf("OIDC token file %q: %w, accepted: a readable file with a service account token", path, err)
	}
	token := strings.TrimSpace(string(content))
	if len(token) < minOIDCToken || len(token) > maxOIDCToken {
		return "", fmt.Errorf("OIDC token file %q: %d characters, accepted: a service account token of %d to %d",
			path, len(token), minOIDCToken, maxOIDCToken)
	}
	return token, nil
}
