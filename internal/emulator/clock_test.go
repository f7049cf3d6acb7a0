package emulator_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
)

// TestClock: setting the clock forward ends asynchronous changes and rate windows; requests that are signed by the clock of the host are
// still accepted.
func TestClock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		config := cloud.DefaultConfig()
		config.RateLimits = map[string]cloud.RateLimitConfig{"vpc:DescribeVpcs": {Calls: 1, Seconds: 3600}}
		a := newBubble(t, emulator.Options{Config: config, Settle: time.Hour})
		testkit.Must(a.call("vpc", "CreateRouteTable", map[string]string{"VpcId": "vpc-emulator", "RouteTableName": "slow"}))(t)
		wantEqual(t, "status at first", a.tableStatus("slow"), "Pending")
		testkit.Must(a.call("vpc", "DescribeVpcs", nil))(t)
		_, err := a.call("vpc", "DescribeVpcs", nil)
		wantCode(t, err, "Throttling.User", 400)
		host, changed := time.Now(), a.Changed()
		testkit.Must(0, a.Advance(2*time.Hour))(t)
		<-changed
		wantEqual(t, "status later", a.tableStatus("slow"), "Available")
		testkit.Must(a.call("vpc", "DescribeVpcs", nil))(t)
		wantEqual(t, "time of the host", time.Since(host), time.Duration(0))
		wantEqual(t, "time of the cloud", a.Now().Sub(host), 2*time.Hour)
	})
}

// tableStatus is the status of the route table with a name.
func (a *account) tableStatus(name string) string {
	a.t.Helper()
	text := testkit.Must(a.call("vpc", "DescribeRouteTableList", map[string]string{"VpcId": "vpc-emulator", "RouteTableName": name}))(a.t)
	_, rest, _ := strings.Cut(text, `"Status":"`)
	status, _, _ := strings.Cut(rest, `"`)
	return status
}

// TestClockByAdmin: the admin API sets the clock forward, and never back.
func TestClockByAdmin(t *testing.T) {
	t.Parallel()
	a := newAccount(t, emulator.Options{Settle: time.Hour})
	testkit.Must(a.call("vpc", "CreateRouteTable", map[string]string{"VpcId": "vpc-emulator", "RouteTableName": "slow"}))(t)
	url := a.url + "/_emulator/clock"
	code, answer := get(t, "POST", url, `{"advance":"2h"}`)
	wantEqual(t, "advance: "+answer, code, 200)
	wantEqual(t, "status", a.tableStatus("slow"), "Available")
	const far = "at most 876000h ahead" // further, a sum would overflow and set the clock back
	for body, want := range map[string]string{
		`{"advance":"-2h"}`:                  "forward only",
		`{"advance":"876000h"}`:              far,
		`{"advance":"2562047h"}`:             far,
		`{"advance":"soon"}`:                 `advance: \"soon\", accepted: a duration such as \"30s\"`,
		`{"advance":3600}`:                   `advance: 3600, accepted: a duration such as \"30s\"`,
		`{"back":"1h"}`:                      `\"back\"`,
		`{}`:                                 "advance: required",
		`{"advance":"1h"}{"advance":"999h"}`: "more than one JSON value",
	} {
		code, answer = get(t, "POST", url, body)
		if code != 400 || !strings.Contains(answer, want) {
			t.Errorf("%s: %d %s, want %s", body, code, answer, want)
		}
	}
	code, answer = get(t, "GET", url, "")
	if code != 200 || !strings.Contains(answer, `"ahead":"2h0m0s"`) {
		t.Errorf("clock: %d %s", code, answer)
	}
}

// TestClockDuringRequest: a request whose body arrives while the clock is set forward is signed in time, and takes place then.
func TestClockDuringRequest(t *testing.T) {
	t.Parallel()
	a := newAccount(t, emulator.Options{})
	form := encode(signed("POST", "1", func(p api.Params) { p["Action"], p["Version"] = "CreateLoadBalancer", "2014-05-15" }))
	body := onRead(strings.NewReader(form), func() { testkit.Must(0, a.Advance(48*time.Hour))(t) })
	r := httptest.NewRequest(http.MethodPost, "/", body)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	w := httptest.NewRecorder()
	a.Handler().ServeHTTP(w, r)
	wantEqual(t, "answer: "+w.Body.String(), w.Code, 200)
	_, state := get(t, "GET", a.url+"/_emulator/state", "")
	if want := time.Now().Add(48 * time.Hour).UTC().Format(`"CreateTime":"2006-01-02T15`); !strings.Contains(state, want) {
		// The hour may have changed since.
		want = time.Now().Add(47 * time.Hour).UTC().Format(`"CreateTime":"2006-01-02T15`)
		if !strings.Contains(state, want) {
			t.Errorf("state %s, want %s", state, want)
		}
	}
}

// reading calls a function before the first byte is read.
type reading struct {
	io.Reader
	first func()
}

func onRead(r io.Reader, first func()) io.Reader { return &reading{r, sync.OnceFunc(first)} }

func (r *reading) Read(p []byte) (int, error) {
	r.first()
	return r.Reader.Read(p)
}

// TestClockStep: when the clock is set forward within a change, its end is announced when it comes, and not when it would have come.
func TestClockStep(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newBubble(t, emulator.Options{Settle: 10 * time.Second})
		testkit.Must(a.call("vpc", "CreateRouteTable", map[string]string{"VpcId": "vpc-emulator", "RouteTableName": "slow"}))(t)
		testkit.Must(0, a.Advance(8*time.Second))(t)
		changed, start := a.Changed(), time.Now()
		<-changed
		wantEqual(t, "end", time.Since(start), 2*time.Second)
		wantEqual(t, "status", a.tableStatus("slow"), "Available")
	})
}
