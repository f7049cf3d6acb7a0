package console_test

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/aliyun/alibaba-cloud-sdk-go/sdk"
	"github.com/aliyun/alibaba-cloud-sdk-go/sdk/auth/credentials"
	"github.com/aliyun/alibaba-cloud-sdk-go/sdk/requests"
	"go.uber.org/goleak"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/emulatortest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// scene is an emulator with some life in it.
type scene struct {
	*emulator.Emulator
	t      *testing.T
	url    string
	client *sdk.Client
	host   string
}

func newScene(t *testing.T) *scene {
	t.Helper()
	m := &emulatortest.Machines{Refusing: "i-worker3"}
	config := cloud.DefaultConfig()
	// Windows of a day: no test should meet the end of one.
	config.RateLimits = map[string]cloud.RateLimitConfig{
		"slb:CreateLoadBalancer": {Calls: 60, Seconds: 86400}, "slb:DescribeLoadBalancers": {Calls: 3000, Seconds: 86400},
	}
	e, err := emulator.New(emulator.Options{Config: config, Fabric: true, Machines: m, RateLimits: emulator.RateLimitsPublished})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(e.Handler())
	transport := http.DefaultTransport.(*http.Transport).Clone()
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		// The emulator first: it ends the streams of events, for which the server would wait.
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		server.Close()
		m.Wait()
	})
	settings := sdk.NewConfig().WithAutoRetry(false).WithScheme("HTTP")
	settings.Transport = transport
	client, err := sdk.NewClientWithOptions("cn-hangzhou", settings, credentials.NewAccessKeyCredential("emulator", "emulator-secret"))
	if err != nil {
		t.Fatal(err)
	}
	return &scene{e, t, server.URL, client, server.Listener.Addr().String()}
}

// call makes a call of the OpenAPI, whatever comes of it.
func (s *scene) call(version, action string, params map[string]string) string {
	r := requests.NewCommonRequest()
	r.Domain, r.Version, r.ApiName, r.Scheme, r.Method = s.host, version, action, "HTTP", http.MethodPost
	r.QueryParams = map[string]string{}
	maps.Copy(r.QueryParams, params)
	response, err := s.client.ProcessCommonRequest(r)
	if response == nil {
		s.t.Errorf("%s: %v", action, err)
		return ""
	}
	return response.GetHttpContentString()
}

func (s *scene) put(id string, spec emulator.InstanceSpec) {
	s.t.Helper()
	if _, err := s.PutInstance(id, spec); err != nil {
		s.t.Fatal(err)
	}
}

// fetch reads a page of the console.
func (s *scene) fetch(path string) (string, http.Header) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.url+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		s.t.Fatalf("%s: %s, %v", path, response.Status, err)
	}
	return string(body), response.Header
}

// decode reads the answer to a call.
func (s *scene) decode(v any, body string) {
	s.t.Helper()
	if err := json.Unmarshal([]byte(body), v); err != nil {
		s.t.Fatalf("%v in %q", err, body)
	}
}
