package alicloud

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// metadataServer answers like the service of one instance.
type metadataServer struct {
	tokens bool // grants tokens and then requires them
	keys   map[string]string
}

func (s metadataServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	const token = "token-1"
	switch {
	case r.URL.Path == "/latest/api/token" && r.Method == http.MethodPut && s.tokens:
		_, _ = io.WriteString(w, token)
	case r.URL.Path == "/latest/api/token":
		http.Error(w, "no tokens here", http.StatusNotFound)
	case s.tokens && r.Header.Get("X-aliyun-ecs-metadata-token") != token:
		http.Error(w, "token required", http.StatusForbidden)
	default:
		value, ok := s.keys[strings.TrimPrefix(r.URL.Path, "/latest/meta-data/")]
		if !ok {
			http.NotFound(w, r)
			return
		}
		_, _ = io.WriteString(w, value)
	}
}

func newTestMetadata(t *testing.T, server metadataServer) *Metadata {
	t.Helper()
	http := httptest.NewServer(server)
	t.Cleanup(http.Close)
	return NewMetadata(http.URL)
}

func TestMetadataWithAndWithoutTokens(t *testing.T) {
	t.Parallel()
	keys := map[string]string{"instance-id": "i-1\n", "region-id": "cn-hangzhou", "vpc-id": "vpc-1", "vswitch-id": "vsw-1",
		"zone-id": "cn-hangzhou-a"}
	for _, tokens := range []bool{true, false} {
		m := newTestMetadata(t, metadataServer{tokens: tokens, keys: keys})
		if id, err := m.InstanceID(t.Context()); id != "i-1" || err != nil {
			t.Errorf("tokens %t: instance id %q, %v", tokens, id, err)
		}
		if region, err := m.RegionID(t.Context()); region != "cn-hangzhou" || err != nil {
			t.Errorf("tokens %t: region %q, %v", tokens, region, err)
		}
	}
}

func TestMetadataFailures(t *testing.T) {
	t.Parallel()
	m := newTestMetadata(t, metadataServer{keys: map[string]string{"vpc-id": ""}})
	if _, err := m.VPCID(t.Context()); err == nil {
		t.Error("an empty answer is accepted")
	}
	if _, err := m.ZoneID(t.Context()); !errors.Is(err, ErrNotFound) {
		t.Errorf("missing key: %v, want ErrNotFound", err)
	}
	if _, err := m.RoleCredentials(t.Context()); !errors.Is(err, ErrNoRole) {
		t.Errorf("no role: %v, want ErrNoRole", err)
	}
}

// TestMetadataFollowsNoRedirect: whatever answers in place of the service sends nobody elsewhere, neither with the token nor for keys.
func TestMetadataFollowsNoRedirect(t *testing.T) {
	t.Parallel()
	var elsewhere atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		elsewhere.Add(1)
		_, _ = io.WriteString(w, "i-of-somebody-else")
	}))
	t.Cleanup(other.Close)
	redirecting := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL+r.URL.Path, http.StatusTemporaryRedirect)
	}))
	t.Cleanup(redirecting.Close)
	id, err := NewMetadata(redirecting.URL).InstanceID(t.Context())
	if err == nil || !strings.Contains(err.Error(), "HTTP status 307") || elsewhere.Load() != 0 {
		t.Errorf("instance id %q, error %v, %d requests elsewhere; want an error that names the status, and none", id, err, elsewhere.Load())
	}
}

func TestRoleCredentials(t *testing.T) {
	t.Parallel()
	document := `{"AccessKeyId":"STS.1","AccessKeySecret":"s","SecurityToken":"t","Expiration":"2100-01-01T00:00:00Z","Code":"Success"}`
	m := newTestMetadata(t, metadataServer{tokens: true, keys: map[string]string{
		"ram/security-credentials/": "emulator-role\n", "ram/security-credentials/emulator-role": document,
	}})
	keys, err := NewRoleCredentials(m).Credentials(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := Credentials{AccessKeyID: "STS.1", AccessKeySecret: "s", SecurityToken: "t",
		Expiration: time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)}
	if keys != want {
		t.Error("the keys are not those of the document")
	}
}

func TestParseRoleDocumentHidesItsContent(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`{"AccessKeySecret":"SECRET"`, `{"AccessKeySecret":"SECRET","Code":"Failed"}`,
		`{"AccessKeySecret":"SECRET","Expiration":"SECRET"}`,
		`{"Code":"Success"}`, `{"AccessKeyId":"SECRET","AccessKeySecret":"SECRET","SecurityToken":"SECRET","Code":"Success"}`} {
		_, err := parseRoleDocument(text)
		if err == nil || strings.Contains(err.Error(), "SECRET") {
			t.Errorf("document %q: error %v", text, err)
		}
	}
}

func TestCredentialsPrintNothing(t *testing.T) {
	t.Parallel()
	keys := Credentials{AccessKeyID: "ID", AccessKeySecret: "SECRET"}
	if got := keys.String() + keys.GoString() + StaticCredentials(keys).String(); strings.Contains(got, "SECRET") ||
		strings.Contains(got, "ID") {
		t.Errorf("credentials print as %q", got)
	}
}

// TestMetadataTokenForgotten restarts the service, which then knows no token that it has granted.
func TestMetadataTokenForgotten(t *testing.T) {
	t.Parallel()
	token, puts := "first", 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodPut:
			puts++
			_, _ = io.WriteString(w, token)
		case r.Header.Get("X-aliyun-ecs-metadata-token") != token:
			w.WriteHeader(http.StatusForbidden)
		default:
			_, _ = io.WriteString(w, "i-1")
		}
	}))
	t.Cleanup(server.Close)
	m := NewMetadata(server.URL)
	for _, current := range []string{"first", "second"} {
		token = current
		if id, err := m.InstanceID(t.Context()); id != "i-1" || err != nil {
			t.Errorf("token %s: instance id %q, %v", current, id, err)
		}
	}
	if _, err := m.WithoutTokens().InstanceID(t.Context()); !errors.Is(err, errForbidden) {
		t.Errorf("plain read where a token is required: %v, want errForbidden", err)
	}
	if puts != 2 {
		t.Errorf("%d tokens asked for, want 2", puts)
	}
}
