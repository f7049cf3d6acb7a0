package emulator_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	slbapi "github.com/aliyun/alibaba-cloud-sdk-go/services/slb"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/rpc"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
)

// signed makes correctly signed parameters of a request, with a nonce of its own.
func signed(method, nonce string, edit func(api.Params)) api.Params {
	p := api.Params{
		"Action": "DescribeVpcs", "Version": "2016-04-28", "Format": "JSON", "AccessKeyId": "emulator", "SignatureNonce": nonce,
		"SignatureMethod": "HMAC-SHA1", "SignatureVersion": "1.0", "Timestamp": time.Now().UTC().Format("2006-01-02T15:04:05Z"),
	}
	if edit != nil {
		edit(p)
	}
	p["Signature"] = rpc.Sign("emulator-secret", method, p)
	return p
}

func encode(p api.Params) string {
	v := url.Values{}
	for k, value := range p {
		v.Set(k, value)
	}
	return v.Encode()
}

// send hands a request to the emulator and returns status and body.
func send(e *emulator.Emulator, method, target, body string, header ...string) (int, string) {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	r.RemoteAddr = "127.0.0.1:1"
	if strings.HasPrefix(target, "/_emulator/") {
		r.Host = "localhost" // other requests are signed for a host
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	e.Handler().ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

func code(t *testing.T, body string) string {
	t.Helper()
	var answer struct{ Code, RequestId, HostId, Message, Recommend string }
	testkit.Must(0, json.Unmarshal([]byte(body), &answer))(t)
	if answer.RequestId == "" || answer.HostId == "" || answer.Recommend == "" {
		t.Errorf("the error %s lacks a field of the cloud's form", body)
	}
	return answer.Code
}

func TestProtocol(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, code string
		status     int
		edit       func(api.Params)
		spoil      func(api.Params)
	}{
		{name: "good", status: 200},
		{name: "wrong secret", code: "SignatureDoesNotMatch", status: 400, spoil: func(p api.Params) {
			p["Signature"] = rpc.Sign("no", "GET", p)
		}},
		{name: "changed parameter", code: "SignatureDoesNotMatch", status: 400, spoil: func(p api.Params) { p["VpcId"] = "vpc-x" }},
		{name: "unknown key", code: "InvalidAccessKeyId.NotFound", status: 404, edit: func(p api.Params) { p["AccessKeyId"] = "who" }},
		{name: "old", code: "IllegalTimestamp", status: 400, edit: func(p api.Params) {
			p["Timestamp"] = time.Now().Add(-32 * time.Minute).UTC().Format("2006-01-02T15:04:05Z")
		}},
		{name: "from the future", code: "IllegalTimestamp", status: 400, edit: func(p api.Params) {
			p["Timestamp"] = time.Now().Add(32 * time.Minute).UTC().Format("2006-01-02T15:04:05Z")
		}},
		{name: "odd time", code: "IllegalTimestamp", status: 400, edit: func(p api.Params) { p["Timestamp"] = "today" }},
		{name: "no nonce", code: "MissingParameter", status: 400, edit: func(p api.Params) { delete(p, "SignatureNonce") }},
		{name: "other algorithm", code: "IncompleteSignature", status: 400, edit: func(p api.Params) { p["SignatureMethod"] = "HMAC-SHA256" }},
		{name: "token of nobody", code: "InvalidSecurityToken.Malformed", status: 400, edit: func(p api.Params) { p["SecurityToken"] = "x" }},
		{name: "unknown version", code: "NoSuchVersion", status: 400, edit: func(p api.Params) { p["Version"] = "1999-01-01" }},
		{name: "not implemented", code: "UnsupportedOperation", status: 400, edit: func(p api.Params) { p["Action"] = "CreateNatGateway" }},
		{name: "page too large", code: "InvalidParameter", status: 400, edit: func(p api.Params) { p["PageSize"] = "51" }},
		{name: "no number", code: "InvalidParameter", status: 400, edit: func(p api.Params) { p["PageSize"] = "ten" }},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			e := newEmulator(t, emulator.Options{})
			p := signed("GET", "n", test.edit)
			if test.spoil != nil {
				test.spoil(p)
			}
			status, body := send(e, "GET", "/?"+encode(p), "")
			if test.code == "" {
				wantEqual(t, "status", status, test.status)
				return
			}
			wantEqual(t, "answer", []any{status, code(t, body)}, []any{test.status, test.code})
			wantEqual(t, "journal", e.Calls(0)[0].Code, test.code)
		})
	}
}

func TestNonceIsUsedOnce(t *testing.T) {
	t.Parallel()
	e := newEmulator(t, emulator.Options{})
	p := signed("GET", "n", nil)
	status, _ := send(e, "GET", "/?"+encode(p), "")
	wantEqual(t, "first", status, 200)
	status, body := send(e, "GET", "/?"+encode(p), "")
	wantEqual(t, "second", []any{status, code(t, body)}, []any{400, "SignatureNonceUsed"})
}

func TestWhereParametersTravel(t *testing.T) {
	t.Parallel()
	e := newEmulator(t, emulator.Options{})
	form := []string{"Content-Type", "application/x-www-form-urlencoded"}
	status, _ := send(e, "POST", "/", encode(signed("POST", "body", nil)), form...)
	wantEqual(t, "form body", status, 200)
	p := signed("POST", "both", nil)
	inQuery := api.Params{"Action": p["Action"], "Signature": p["Signature"]}
	delete(p, "Action")
	delete(p, "Signature")
	status, _ = send(e, "POST", "/vpc?"+encode(inQuery), encode(p), form...)
	wantEqual(t, "query and body under a path prefix", status, 200)
	status, body := send(e, "GET", "/slb?"+encode(signed("GET", "other", nil)), "")
	wantEqual(t, "wrong prefix", []any{status, code(t, body)}, []any{400, "NoSuchVersion"})
	status, _ = send(e, "PUT", "/", "")
	wantEqual(t, "method", status, 405)
	status, _ = send(e, "GET", "/?"+encode(signed("GET", "twice", nil))+"&Action=DescribeVpcs", "")
	wantEqual(t, "twice", status, 400)
	status, _ = send(e, "POST", "/", strings.Repeat("x", rpc.MaxBody+1), form...)
	wantEqual(t, "large", status, 413)
}

func TestXMLIsTheDefault(t *testing.T) {
	t.Parallel()
	e := newEmulator(t, emulator.Options{})
	_, body := send(e, "GET", "/?"+encode(signed("GET", "n", func(p api.Params) { delete(p, "Format") })), "")
	var answer struct {
		XMLName   xml.Name `xml:"DescribeVpcsResponse"`
		RequestID string   `xml:"RequestId"`
		IDs       []string `xml:"Vpcs>Vpc>VpcId"`
		Tables    []string `xml:"Vpcs>Vpc>RouterTableIds>RouterTableIds"`
		Total     int      `xml:"TotalCount"`
	}
	testkit.Must(0, xml.Unmarshal([]byte(body), &answer))(t)
	wantEqual(t, "answer", []any{answer.IDs, answer.Tables, answer.Total, len(answer.RequestID)},
		[]any{[]string{"vpc-emulator"}, []string{"vtb-emulator"}, 1, 36})
	_, body = send(e, "GET", "/", "")
	var failure struct {
		XMLName xml.Name `xml:"Error"`
		Code    string
	}
	testkit.Must(0, xml.Unmarshal([]byte(body), &failure))(t)
	wantEqual(t, "code", failure.Code, "MissingParameter")
}

func TestPermissions(t *testing.T) {
	t.Parallel()
	config := cloud.DefaultConfig()
	config.AccessKeys[0].Permissions = []string{"slb:Describe*", "vpc:DescribeVpcs"}
	config.AccessKeys = append(config.AccessKeys, cloud.AccessKeyConfig{ID: "off", Secret: "emulator-secret", Disabled: true})
	a := newAccount(t, emulator.Options{Config: config})
	a.put("i-1", emulator.InstanceSpec{})
	testkit.Must(a.slb.DescribeLoadBalancers(slbapi.CreateDescribeLoadBalancersRequest()))(t)
	testkit.Must(a.call("sts", "GetCallerIdentity", nil))(t)
	_, err := a.call("slb", "DeleteLoadBalancer", nil)
	wantCode(t, err, "Forbidden.RAM", 403)
	body := testkit.Must(a.call("ecs", "DescribeInstances", nil))(t)
	if !strings.Contains(body, `"TotalCount":0`) {
		t.Errorf("without permission DescribeInstances answers %s, not an empty list", body)
	}
	_, err = a.call("ecs", "DescribeInstances", map[string]string{"DryRun": "true"})
	wantCode(t, err, "Forbidden.RAM", 403)
	_, body = send(a.Emulator, "GET", "/?"+encode(signed("GET", "n", func(p api.Params) { p["AccessKeyId"] = "off" })), "")
	wantEqual(t, "disabled key", code(t, body), "InvalidAccessKeyId.Inactive")
}

func TestRateWindow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newBubble(t, emulator.Options{RateLimits: emulator.RateLimitsPublished})
		create := func() error {
			_, err := a.call("slb", "CreateLoadBalancer", nil)
			return err
		}
		for range 60 {
			testkit.Must(0, create())(t)
		}
		wantCode(t, create(), "Throttling.User", 400)
		time.Sleep(59 * time.Second)
		wantCode(t, create(), "Throttling.User", 400)
		time.Sleep(time.Second)
		// The window is open again; now the account's quota is the limit.
		wantCode(t, create(), "ORDER.QUOTA_EXCEEDED", 400)
	})
}

func TestConfiguredRateLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		config := cloud.DefaultConfig()
		config.RateLimits = map[string]cloud.RateLimitConfig{"vpc:DescribeVpcs": {Calls: 2, Seconds: 10}}
		a := newBubble(t, emulator.Options{Config: config})
		describe := func() error {
			_, err := a.call("vpc", "DescribeVpcs", nil)
			return err
		}
		testkit.Must(0, describe())(t)
		testkit.Must(0, describe())(t)
		wantCode(t, describe(), "Throttling.User", 400)
		time.Sleep(10 * time.Second)
		testkit.Must(0, describe())(t)
	})
}

func TestJournalHoldsNoSecrets(t *testing.T) {
	t.Parallel()
	var lines bytes.Buffer
	e := newEmulator(t, emulator.Options{Journal: &lines, JournalLimit: 2})
	for _, nonce := range []string{"1", "2", "3"} {
		send(e, "GET", "/?"+encode(signed("GET", nonce, func(p api.Params) { p["VpcId"] = "vpc-" + nonce })), "")
	}
	calls := e.Calls(0)
	wantEqual(t, "kept", []any{len(calls), calls[0].Seq, calls[1].Seq, calls[1].Parameters},
		[]any{2, int64(2), int64(3), api.Params{"VpcId": "vpc-3"}})
	wantEqual(t, "after", len(e.Calls(2)), 1)
	wantEqual(t, "lines", strings.Count(lines.String(), "\n"), 3)
	if strings.Contains(lines.String(), "Signature") {
		t.Error("the journal shows signatures")
	}
}

func get(t *testing.T, method, url, body string, header ...string) (int, string) {
	t.Helper()
	r := testkit.Must(http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body)))(t)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response := testkit.Must(client.Do(r))(t)
	data := testkit.Must(io.ReadAll(response.Body))(t)
	testkit.Must(0, response.Body.Close())(t)
	return response.StatusCode, string(data)
}

// fieldOf reads one field of a JSON answer.
func fieldOf(tb testing.TB, body, field string) string {
	tb.Helper()
	var answer map[string]any
	if err := json.Unmarshal([]byte(body), &answer); err != nil {
		tb.Fatal(err)
	}
	value, ok := answer[field].(string)
	if !ok {
		tb.Fatalf("%s has no %s", body, field)
	}
	return value
}
