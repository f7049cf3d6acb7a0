package alicloud

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// DefaultMetadataEndpoint is where every ECS instance finds its own metadata:
// https://www.alibabacloud.com/help/en/ecs/user-guide/view-instance-metadata.
const DefaultMetadataEndpoint = "http://100.100.100.200"

const (
	// metadataTimeout bounds one read. The service answers on the host itself within milliseconds; off ECS the address
	// leads nowhere, and waiting longer would only delay the clear error.
	metadataTimeout = 3 * time.Second
	// metadataTokenLifetime is asked for with each token; 6 h is the longest that the service grants.
	metadataTokenLifetime = 6 * time.Hour
	// maxMetadataSize bounds an answer; the largest real one, a role document, has about 2 KiB.
	maxMetadataSize = 64 << 10
)

// ErrNotFound says that the metadata service answers but does not know the key.
var ErrNotFound = errors.New("not found")

// errForbidden is the answer to a read without token where the instance requires one, and to one with a wrong token.
var errForbidden = errors.New("HTTP status 403: this instance requires a token, and none or a wrong one was sent")

// Metadata reads the metadata service of the ECS instance that this process runs on. It uses the token mode and falls
// back to plain reads where the service grants no token, so that instances of either setting work. It is safe for
// concurrent use.
type Metadata struct {
	endpoint string
	client   *http.Client
	// plain switches the token mode off.
	plain bool

	mu      sync.Mutex // guards the token
	token   string
	expires time.Time
}

// NewMetadata returns a reader of the service at endpoint; "" means [DefaultMetadataEndpoint]. It makes no call.
func NewMetadata(endpoint string) *Metadata {
	if endpoint == "" {
		endpoint = DefaultMetadataEndpoint
	}
	// The service stands on a link-local address: a proxy of the environment must not be asked for it.
	transport := &http.Transport{Proxy: nil, DisableKeepAlives: true}
	return &Metadata{
		endpoint: strings.TrimSuffix(endpoint, "/"),
		client: &http.Client{
			Timeout: metadataTimeout, Transport: transport,
			// The service never redirects. Following one would send the token elsewhere, and take keys and identity from there.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// WithoutTokens returns a reader of the same service that never asks for a token.
func (m *Metadata) WithoutTokens() *Metadata {
	return &Metadata{endpoint: m.endpoint, client: m.client, plain: true}
}

// InstanceID returns the instance's id, for example "i-bp1…".
func (m *Metadata) InstanceID(ctx context.Context) (string, error) { return m.get(ctx, "instance-id") }

// RegionID returns the region id, for example "cn-hangzhou".
func (m *Metadata) RegionID(ctx context.Context) (string, error) { return m.get(ctx, "region-id") }

// ZoneID returns the zone id, for example "cn-hangzhou-b".
func (m *Metadata) ZoneID(ctx context.Context) (string, error) { return m.get(ctx, "zone-id") }

// VPCID returns the id of the instance's VPC.
func (m *Metadata) VPCID(ctx context.Context) (string, error) { return m.get(ctx, "vpc-id") }

// VSwitchID returns the id of the instance's vSwitch.
func (m *Metadata) VSwitchID(ctx context.Context) (string, error) { return m.get(ctx, "vswitch-id") }

// OwnerAccountID returns the account that the instance is in.
func (m *Metadata) OwnerAccountID(ctx context.Context) (string, error) {
	return m.get(ctx, "owner-account-id")
}

// PrivateIPv4s returns the private IPv4 addresses of all network interfaces of the instance, the primary one first.
func (m *Metadata) PrivateIPv4s(ctx context.Context) ([]string, error) {
	primary, err := m.get(ctx, "private-ipv4")
	if err != nil {
		return nil, err
	}
	more, err := m.ofInterfaces(ctx, "private-ipv4s")
	return append([]string{primary}, more...), err
}

// IPv6s returns the IPv6 addresses of all network interfaces of the instance.
func (m *Metadata) IPv6s(ctx context.Context) ([]string, error) { return m.ofInterfaces(ctx, "ipv6s") }

// ofInterfaces returns the addresses below a key of all network interfaces.
func (m *Metadata) ofInterfaces(ctx context.Context, key string) (addresses []string, err error) {
	macs, err := m.get(ctx, "network/interfaces/macs/")
	if errors.Is(err, ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for mac := range strings.FieldsSeq(macs) {
		text, err := m.get(ctx, "network/interfaces/macs/"+strings.TrimSuffix(mac, "/")+"/"+key)
		if errors.Is(err, ErrNotFound) { // an interface without such an address
			continue
		}
		if err != nil {
			return nil, err
		}
		addresses = append(addresses, strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune("[]\", \n", r) })...)
	}
	return addresses, nil
}

// RoleCredentials returns the temporary keys of the instance's RAM role, or [ErrNoRole].
func (m *Metadata) RoleCredentials(ctx context.Context) (Credentials, error) {
	roles, err := m.get(ctx, "ram/security-credentials/")
	if errors.Is(err, ErrNotFound) {
		return Credentials{}, ErrNoRole
	}
	if err != nil {
		return Credentials{}, err
	}
	role, _, _ := strings.Cut(roles, "\n")
	text, err := m.get(ctx, "ram/security-credentials/"+strings.TrimSpace(role))
	if err != nil {
		return Credentials{}, err
	}
	return parseRoleDocument(text)
}

// roleDocument is the answer below ram/security-credentials/<role>.
type roleDocument struct {
	AccessKeyID     string `json:"AccessKeyId"`
	AccessKeySecret string
	SecurityToken   string
	Expiration      time.Time
	Code            string
}

func parseRoleDocument(text string) (Credentials, error) {
	var doc roleDocument
	if err := json.Unmarshal([]byte(text), &doc); err != nil {
		return Credentials{}, errors.New("the role document is not valid JSON") // err could quote a key
	}
	if doc.Code != "Success" {
		return Credentials{}, fmt.Errorf("the role document has code %q, not \"Success\"", cloudText(doc.Code))
	}
	if doc.AccessKeyID == "" || doc.AccessKeySecret == "" || doc.SecurityToken == "" || doc.Expiration.IsZero() {
		// Calls would be signed with an empty key, and the service would be asked anew for each of them.
		return Credentials{},
			errors.New("the role document has no complete key: AccessKeyId, AccessKeySecret, SecurityToken and Expiration are needed")
	}
	return Credentials{
		AccessKeyID: doc.AccessKeyID, AccessKeySecret: doc.AccessKeySecret,
		SecurityToken: doc.SecurityToken, Expiration: doc.Expiration,
	}, nil
}

// get reads one key below meta-data/. An empty answer is an error: no key of ours is ever empty on a real instance.
func (m *Metadata) get(ctx context.Context, key string) (string, error) {
	token := m.currentToken(ctx)
	text, err := m.read(ctx, key, token)
	if errors.Is(err, errForbidden) && token != "" {
		// The service has forgotten the token, for example because the instance was moved to another host.
		m.dropToken(token)
		text, err = m.read(ctx, key, m.currentToken(ctx))
	}
	if err == nil && text == "" {
		err = errors.New("empty answer")
	}
	if err != nil {
		return "", &metadataError{endpoint: m.endpoint, key: key, err: err}
	}
	return text, nil
}

func (m *Metadata) read(ctx context.Context, key, token string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, m.endpoint+"/latest/meta-data/"+key, nil)
	if err != nil {
		return "", err
	}
	if token != "" {
		request.Header.Set("X-aliyun-ecs-metadata-token", token)
	}
	return m.do(request)
}

// metadataError says that a key could not be read.
type metadataError struct {
	endpoint, key string
	err           error
}

func (e *metadataError) Error() string {
	return fmt.Sprintf("metadata service %s: %s: %v", e.endpoint, e.key, e.err)
}

func (e *metadataError) Unwrap() error { return e.err }

func (m *Metadata) dropToken(token string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.token == token {
		m.token = ""
	}
}

// currentToken returns a token, or "" where the service grants none: instances may have the token mode switched off, and
// the plain read that follows then says what is wrong.
func (m *Metadata) currentToken(ctx context.Context) string {
	if m.plain {
		return ""
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.token != "" && time.Now().Before(m.expires) {
		return m.token
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPut, m.endpoint+"/latest/api/token", nil)
	if err != nil {
		return ""
	}
	lifetime := fmt.Sprintf("%d", int(metadataTokenLifetime.Seconds()))
	request.Header.Set("X-aliyun-ecs-metadata-token-ttl-seconds", lifetime)
	token, err := m.do(request)
	if err != nil {
		return ""
	}
	m.token, m.expires = token, time.Now().Add(metadataTokenLifetime/2)
	return token
}

func (m *Metadata) do(request *http.Request) (string, error) {
	response, err := m.client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxMetadataSize))
	switch {
	case err != nil:
		return "", err
	case response.StatusCode == http.StatusNotFound:
		return "", ErrNotFound
	case response.StatusCode == http.StatusForbidden:
		return "", errForbidden
	case response.StatusCode != http.StatusOK:
		return "", fmt.Errorf("HTTP status %d", response.StatusCode)
	}
	return strings.TrimSpace(string(body)), nil
}
