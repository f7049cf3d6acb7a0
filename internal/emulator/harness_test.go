package emulator_test

import (
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/aliyun/alibaba-cloud-sdk-go/sdk"
	"github.com/aliyun/alibaba-cloud-sdk-go/sdk/auth/credentials"
	sdkerrors "github.com/aliyun/alibaba-cloud-sdk-go/sdk/errors"
	"github.com/aliyun/alibaba-cloud-sdk-go/sdk/requests"
	ecsapi "github.com/aliyun/alibaba-cloud-sdk-go/services/ecs"
	slbapi "github.com/aliyun/alibaba-cloud-sdk-go/services/slb"
	vpcapi "github.com/aliyun/alibaba-cloud-sdk-go/services/vpc"
	"github.com/google/go-cmp/cmp"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/emulatortest"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
)

const region = "cn-hangzhou"

// account is an emulator with one client of the official SDK per product.
type account struct {
	*emulator.Emulator
	t   *testing.T
	url string
	slb *slbapi.Client
	vpc *vpcapi.Client
	ecs *ecsapi.Client
}

// newAccount serves an emulator over HTTP.
func newAccount(t *testing.T, o emulator.Options) *account {
	t.Helper()
	e := newEmulator(t, o)
	server := httptest.NewServer(e.Handler())
	t.Cleanup(server.Close)
	transport := http.DefaultTransport.(*http.Transport).Clone()
	t.Cleanup(transport.CloseIdleConnections)
	a := &account{Emulator: e, t: t, url: server.URL}
	a.connect(server.Listener.Addr().String(), transport)
	return a
}

// newBubble serves an emulator without a network, for tests inside a synctest bubble.
func newBubble(t *testing.T, o emulator.Options) *account {
	t.Helper()
	e := newEmulator(t, o)
	a := &account{Emulator: e, t: t}
	a.connect("emulator.test", direct{e.Handler()})
	return a
}

func newEmulator(t *testing.T, o emulator.Options) *emulator.Emulator {
	t.Helper()
	e, err := emulator.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, c := range e.Calls(0) {
			if c.Status == http.StatusOK {
				covers(c.Product+" "+c.Action, t.Name())
			}
		}
		emulatortest.WriteFacts(t, e)
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

// direct is a transport into a handler of the same process.
type direct struct{ handler http.Handler }

func (d direct) RoundTrip(r *http.Request) (response *http.Response, err error) {
	defer func() {
		if recover() != nil {
			err = errors.New("connection closed without an answer")
		}
	}()
	w := httptest.NewRecorder()
	if r.Body == nil {
		r.Body = http.NoBody
	}
	d.handler.ServeHTTP(w, r)
	return w.Result(), nil
}

// The SDK fills its package-level endpoint maps with the first client, without a lock.
func init() {
	slbapi.GetEndpointMap()
	vpcapi.GetEndpointMap()
	ecsapi.GetEndpointMap()
}

func (a *account) connect(host string, transport http.RoundTripper) {
	a.t.Helper()
	a.slb = testkit.Must(slbapi.NewClientWithOptions(region, sdkConfig(transport), emulatorKey))(a.t)
	a.vpc = testkit.Must(vpcapi.NewClientWithOptions(region, sdkConfig(transport), emulatorKey))(a.t)
	a.ecs = testkit.Must(ecsapi.NewClientWithOptions(region, sdkConfig(transport), emulatorKey))(a.t)
	a.slb.Domain, a.vpc.Domain, a.ecs.Domain = host, host, host
}

var emulatorKey = credentials.NewAccessKeyCredential("emulator", "emulator-secret")

func sdkConfig(transport http.RoundTripper) *sdk.Config {
	c := sdk.NewConfig().WithAutoRetry(false).WithScheme("HTTP")
	c.Transport = transport
	return c
}

// wantCode checks that err is an error of the cloud with a code, and returns its status.
func wantCode(t *testing.T, err error, code string, status int) {
	t.Helper()
	var answer sdkerrors.Error
	if !errors.As(err, &answer) {
		t.Fatalf("error = %v, want the cloud's %s", err, code)
	}
	if answer.ErrorCode() != code || answer.HttpStatus() != status {
		t.Fatalf("answer = %d %s (%s), want %d %s", answer.HttpStatus(), answer.ErrorCode(), answer.Message(), status, code)
	}
}

func wantEqual(t *testing.T, what string, got, want any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

// put adds a running instance.
func (a *account) put(id string, spec emulator.InstanceSpec) emulator.Instance {
	a.t.Helper()
	return testkit.Must(a.PutInstance(id, spec))(a.t)
}

// call sends any action of a product by name, for calls that the typed clients cannot make.
func (a *account) call(product, action string, params map[string]string) (string, error) {
	a.t.Helper()
	p, ok := a.Actions().ByName(product)
	if !ok {
		a.t.Fatalf("no product %s", product)
	}
	r := requests.NewCommonRequest()
	r.Domain, r.Version, r.ApiName, r.Scheme, r.Method = a.slb.Domain, p.Version, action, "HTTP", http.MethodPost
	r.QueryParams = maps.Clone(params)
	if r.QueryParams == nil {
		r.QueryParams = map[string]string{}
	}
	response, err := a.slb.ProcessCommonRequest(r)
	if err != nil {
		return "", err
	}
	return response.GetHttpContentString(), nil
}

// sorted returns the keys of a set of values in order.
func sorted[T any](all []T, key func(T) string) []string {
	var keys []string
	for _, v := range all {
		keys = append(keys, key(v))
	}
	slices.Sort(keys)
	return keys
}
