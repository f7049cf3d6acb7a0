// Package emulatortest starts emulators for the tests of other packages and talks to their admin API. It makes no client
// of the cloud: that is what the packages under test bring.
package emulatortest

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
)

// What the built-in configuration has.
const (
	Region          = "cn-hangzhou"
	VPC             = "vpc-emulator"
	SystemTable     = "vtb-emulator"
	AccessKeyID     = "emulator"
	AccessKeySecret = "emulator-secret"
)

// Cloud is an emulator that ends with its test.
type Cloud struct {
	*emulator.Emulator
	t       testing.TB
	handler http.Handler
	serve   func() string
	seen    int64 // number of the last call that NewCalls has returned
}

// New starts an emulator. Without [Cloud.URL] it needs no network, so that it also works inside a synctest bubble.
func New(tb testing.TB, opts emulator.Options) *Cloud {
	tb.Helper()
	e, err := emulator.New(opts)
	if err != nil {
		tb.Fatal(err)
	}
	flip(tb, e)
	tb.Cleanup(func() {
		WriteFacts(tb, e)
		if err := e.Close(); err != nil {
			tb.Error(err)
		}
		// The testing package keeps this function until all tests have ended, and would keep thousands of emulators with it.
		e = nil
	})
	c := &Cloud{Emulator: e, t: tb, handler: e.Handler()}
	c.serve = sync.OnceValue(func() string {
		server := httptest.NewServer(c.handler)
		tb.Cleanup(func() {
			server.Close()
			server = nil // as above
		})
		return server.URL
	})
	return c
}

// URL serves the emulator over HTTP, from the first use on.
func (c *Cloud) URL() string { return c.serve() }

// Transport carries requests to the emulator within the process, whatever their host.
func (c *Cloud) Transport() http.RoundTripper { return direct{c.handler} }

type direct struct{ handler http.Handler }

// RoundTrip implements http.RoundTripper. An answer that the emulator drops is an error, as on a connection that breaks.
func (d direct) RoundTrip(request *http.Request) (response *http.Response, err error) {
	defer func() {
		switch r := recover(); r {
		case nil:
		case http.ErrAbortHandler:
			response, err = nil, errors.New("connection closed without an answer")
		default:
			panic(r)
		}
	}()
	recorder := httptest.NewRecorder()
	if request.Body == nil {
		request.Body = http.NoBody
	}
	d.handler.ServeHTTP(recorder, request)
	return recorder.Result(), nil
}

// Admin makes a request to the admin API and returns the answer. A refusal fails the test.
func (c *Cloud) Admin(method, path, body string) []byte {
	c.t.Helper()
	answer := c.ask(method, path, body)
	if answer.Code/100 != 2 {
		c.t.Fatalf("%s %s: %d %s", method, path, answer.Code, answer.Body)
	}
	return answer.Body.Bytes()
}

func (c *Cloud) ask(method, path, body string) *httptest.ResponseRecorder {
	request := httptest.NewRequestWithContext(context.WithoutCancel(c.t.Context()), method, path, strings.NewReader(body))
	request.RemoteAddr, request.Host = "127.0.0.1:1", "localhost"
	recorder := httptest.NewRecorder()
	c.handler.ServeHTTP(recorder, request)
	return recorder
}

// Put makes or changes an instance, by fields of DescribeInstances as a JSON object.
func (c *Cloud) Put(instance, fields string) {
	c.t.Helper()
	c.Admin(http.MethodPut, "/_emulator/instances/"+instance, fields)
}

// Fault injects a fault, as a JSON object of the admin API.
func (c *Cloud) Fault(rule string) {
	c.t.Helper()
	c.Admin(http.MethodPost, "/_emulator/faults", rule)
}

// Change changes settings of the emulator for the calls to come.
func (c *Cloud) Change(change func(*emulator.Settings)) {
	c.t.Helper()
	if err := c.Emulator.Change(change); err != nil {
		c.t.Fatal(err)
	}
}

// ClearFaults removes all faults.
func (c *Cloud) ClearFaults() {
	c.t.Helper()
	c.Admin(http.MethodDelete, "/_emulator/faults", "")
}

// FaultHits counts the calls that the injected faults hit.
func (c *Cloud) FaultHits() int {
	c.t.Helper()
	var answer struct{ Faults []struct{ Hit int } }
	c.Read("faults", &answer)
	hits := 0
	for _, fault := range answer.Faults {
		hits += fault.Hit
	}
	return hits
}

// Read reads a page of the admin API, such as "state" or "calls?after=3".
func (c *Cloud) Read(page string, into any) {
	c.t.Helper()
	if err := json.Unmarshal(c.Admin(http.MethodGet, "/_emulator/"+page, ""), into); err != nil {
		c.t.Fatal(err)
	}
}

// Last is the number of the last call so far.
func (c *Cloud) Last() int64 {
	calls := c.Calls(0)
	if len(calls) == 0 {
		return 0
	}
	return calls[len(calls)-1].Seq
}

// Count is how often the actions arrived after the call numbered since; without actions it counts all calls.
func (c *Cloud) Count(since int64, actions ...string) int {
	n := 0
	for _, call := range c.Calls(since) {
		if len(actions) == 0 || slices.Contains(actions, call.Action) {
			n++
		}
	}
	return n
}

// Unread returns the calls that [Cloud.NewCalls] has not returned yet.
func (c *Cloud) Unread() []emulator.Call { return c.Calls(c.seen) }

// NewCalls returns the calls since the last time. One goroutine at a time uses it.
func (c *Cloud) NewCalls() []emulator.Call {
	calls := c.Unread()
	if len(calls) > 0 {
		c.seen = calls[len(calls)-1].Seq
	}
	return calls
}

// NewActions is [Cloud.NewCalls] with each call as "Action" or "Action=Code".
func (c *Cloud) NewActions() []string {
	var actions []string
	for _, call := range c.NewCalls() {
		text := call.Action
		if call.Code != "" {
			text += "=" + call.Code
		}
		actions = append(actions, text)
	}
	return actions
}

// Writes returns those of the actions that change something.
func Writes(actions []string) []string {
	var writes []string
	for _, action := range actions {
		if !strings.HasPrefix(action, "Describe") {
			writes = append(writes, action)
		}
	}
	return writes
}
