// Package emulated starts an emulated Alibaba Cloud account inside a test, for projects that test their own programs: ECS, VPC, CLB, NLB
// and STS, over HTTP, with signatures and rate limits.
//
//	account := emulated.Start(t, emulated.Options{})
//	client.Domain, key, secret := account.Host(), account.AccessKeyID, account.AccessKeySecret
//
// Each test that calls [Start] has an account of its own, so that tests run in parallel. It ends with the test.
package emulated

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

// Options say what exists at the start, and how the cloud behaves. The zero value is the built-in configuration, which answers at once and
// limits nothing.
type Options struct {
	// Config is a configuration in YAML, as for the flag --config of alicloud-emulator. "" is the built-in one: region cn-hangzhou, VPC
	// vpc-emulator with the vSwitches vsw-a and vsw-b, and one access key.
	Config string
	// Settle is how long asynchronous changes take. 0 makes them immediate.
	Settle time.Duration
	// PublishedRates rejects calls above the published rate limits.
	PublishedRates bool
	// Listeners makes listeners of load balancers accept connections, on loopback addresses of the host. Such tests must not run in parallel.
	Listeners bool
}

// Account is an emulated account. It is safe for concurrent use.
type Account struct {
	// Region is the only one.
	Region string
	// AccountID is the number of the account.
	AccountID string
	// AccessKeyID and AccessKeySecret are the first key of the configuration.
	AccessKeyID, AccessKeySecret string

	tb       testing.TB
	emulator *emulator.Emulator
	handler  http.Handler
	serve    func() string
}

// Call is one call that the account has got.
type Call struct {
	Product    string            `json:"product"`
	Action     string            `json:"action"`
	Parameters map[string]string `json:"parameters"`
	// Status is the HTTP status of the answer, Code the error code, "" for a success.
	Status int    `json:"status"`
	Code   string `json:"code"`
}

// Start starts an account. A configuration that cannot be read fails the test.
func Start(tb testing.TB, o Options) *Account {
	tb.Helper()
	config := cloud.DefaultConfig()
	if o.Config != "" {
		var err error
		if config, err = cloud.ReadConfig([]byte(o.Config)); err != nil {
			tb.Fatalf("configuration of the emulator: %v", err)
		}
	}
	if len(config.AccessKeys) == 0 {
		config.AccessKeys = cloud.DefaultConfig().AccessKeys
	}
	options := emulator.Options{Config: config, Settle: o.Settle, Fabric: o.Listeners}
	if o.PublishedRates {
		options.RateLimits = emulator.RateLimitsPublished
	}
	e, err := emulator.New(options)
	if err != nil {
		tb.Fatal(err)
	}
	a := &Account{
		Region: config.Region, AccountID: e.AccountID(), AccessKeyID: config.AccessKeys[0].ID, AccessKeySecret: config.AccessKeys[0].Secret,
		tb: tb, emulator: e, handler: e.Handler(),
	}
	end := func() {
		if err := e.Close(); err != nil {
			tb.Error(err)
		}
	}
	a.serve = sync.OnceValue(func() string {
		server := httptest.NewServer(a.handler)
		tb.Cleanup(func() {
			// The server waits for the calls in flight: without the emulator's end, for as long as a fault delays them.
			end()
			server.Close()
		})
		return server.URL
	})
	tb.Cleanup(end)
	return a
}

// URL is where the account is served, over HTTP, from the first use on: all products, the metadata service of instances
// (/metadata/<instance>) and the admin API (/_emulator).
func (a *Account) URL() string { return a.serve() }

// Host is the host and port of [Account.URL], which most SDKs take as endpoint.
func (a *Account) Host() string { return strings.TrimPrefix(a.URL(), "http://") }

// Calls returns the calls so far, in order.
func (a *Account) Calls() []Call {
	var calls []Call
	for _, c := range a.emulator.Calls(0) {
		calls = append(calls, Call{Product: c.Product, Action: c.Action, Parameters: c.Parameters, Status: c.Status, Code: c.Code})
	}
	return calls
}

// Fault makes calls fail, by a JSON object such as {"action":"CreateLoadBalancer","code":"SystemBusy","status":449,"times":2}.
func (a *Account) Fault(rule string) {
	a.tb.Helper()
	a.admin(http.MethodPost, "faults", rule)
}

// ClearFaults removes all faults.
func (a *Account) ClearFaults() {
	a.tb.Helper()
	a.admin(http.MethodDelete, "faults", "")
}

// PutInstance makes or changes an ECS instance, by fields of DescribeInstances as a JSON object such as {"InstanceName":"web-1"}.
func (a *Account) PutInstance(id, fields string) {
	a.tb.Helper()
	a.admin(http.MethodPut, "instances/"+id, fields)
}

// Change changes switches and quotas, by a JSON object.
func (a *Account) Change(settings string) {
	a.tb.Helper()
	a.admin(http.MethodPut, "settings", settings)
}

// State is everything that exists, as a JSON object.
func (a *Account) State() []byte {
	a.tb.Helper()
	return a.admin(http.MethodGet, "state", "")
}

// Advance sets the clock of the cloud forward: asynchronous changes end, rate windows begin anew, temporary keys expire.
// The clock cannot be set back: a negative duration fails the test.
func (a *Account) Advance(d time.Duration) {
	a.tb.Helper()
	if err := a.emulator.Advance(d); err != nil {
		a.tb.Fatal(err)
	}
}

// Snapshot returns all resources.
func (a *Account) Snapshot() []byte {
	a.tb.Helper()
	data, err := a.emulator.Snapshot()
	if err != nil {
		a.tb.Fatal(err)
	}
	return data
}

// Restore replaces all resources by those of a snapshot, also of another account.
func (a *Account) Restore(snapshot []byte) {
	a.tb.Helper()
	if err := a.emulator.Restore(snapshot); err != nil {
		a.tb.Fatal(err)
	}
}

// admin makes a request to the admin API. A refusal fails the test.
func (a *Account) admin(method, page, body string) []byte {
	a.tb.Helper()
	// Tests clean up when their context has ended.
	request := httptest.NewRequestWithContext(context.WithoutCancel(a.tb.Context()), method, "/_emulator/"+page, strings.NewReader(body))
	request.RemoteAddr, request.Host = "127.0.0.1:1", "localhost"
	recorder := httptest.NewRecorder()
	a.handler.ServeHTTP(recorder, request)
	answer, err := io.ReadAll(recorder.Body)
	if err != nil || recorder.Code/100 != 2 {
		a.tb.Fatalf("%s /_emulator/%s: %d %s %v", method, page, recorder.Code, answer, err)
	}
	return answer
}
