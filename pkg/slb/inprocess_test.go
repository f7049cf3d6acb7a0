package slb

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// inProcess carries calls to a server without any network, so that time can be the test's own.
type inProcess struct{ handler http.Handler }

func (p inProcess) RoundTrip(request *http.Request) (response *http.Response, err error) {
	defer func() {
		if reason := recover(); reason != nil { // the server broke the connection off
			response, err = nil, fmt.Errorf("%v: %w", reason, io.ErrUnexpectedEOF)
		}
	}()
	answer := httptest.NewRecorder()
	p.handler.ServeHTTP(answer, request)
	return answer.Result(), nil
}

// processCloud is a cloud without limits of rates.
func processCloud(t *testing.T) *emulator.Emulator {
	t.Helper()
	config := cloud.DefaultConfig()
	config.Quotas = cloud.Limits{LoadBalancers: 10_000, LBsPerInstance: 10_000}
	config.Certificates = []cloud.CertificateConfig{{ID: testCertificate}}
	e, err := emulator.New(emulator.Options{Config: config})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// processClient makes a client of a cloud without a network between.
func processClient(t *testing.T, e *emulator.Emulator) *alicloud.Client {
	t.Helper()
	client, err := alicloud.New(alicloud.Options{
		Region: testRegion, Credentials: alicloud.StaticCredentials{AccessKeyID: "emulator", AccessKeySecret: "emulator-secret"},
		Endpoints: alicloud.Endpoints{PlainHTTP: true, SLB: "cloud", VPC: "cloud", ECS: "cloud"}, Transport: inProcess{e.Handler()},
	})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func adminRequest(t *testing.T, e *emulator.Emulator, method, path string, body []byte, into any) {
	t.Helper()
	answer := httptest.NewRecorder()
	request := httptest.NewRequestWithContext(t.Context(), method, "http://127.0.0.1/_emulator/"+path, bytes.NewReader(body))
	request.RemoteAddr = "127.0.0.1:1"
	e.Handler().ServeHTTP(answer, request)
	if answer.Code >= http.StatusMultipleChoices {
		t.Fatalf("%s %s: %d %s", method, path, answer.Code, answer.Body)
	}
	if into == nil {
		return
	}
	if err := json.Unmarshal(answer.Body.Bytes(), into); err != nil {
		t.Fatal(err)
	}
}

// stateIn returns the CLBs of a cloud by name.
func stateIn(t *testing.T, e *emulator.Emulator) map[string]cloudLB {
	t.Helper()
	var raw rawState
	adminRequest(t, e, http.MethodGet, "state", nil, &raw)
	return raw.plain()
}
