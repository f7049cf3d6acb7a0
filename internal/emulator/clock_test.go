package emulator_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
)

// TestClock: setting the clock forward ends asynchronous changes and rate windows; requests that are signed by the clock of the host are still
// accepted.
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
		a.Advance(2 * time.Hour)
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
	for _, body := range []string{`{"advance":"-2h"}`, `{"advance":"soon"}`, `{"back":"1h"}`} {
		code, _ = get(t, "POST", url, body)
		wantEqual(t, body, code, 400)
	}
	code, answer = get(t, "GET", url, "")
	if code != 200 || !strings.Contains(answer, `"ahead":"2h0m0s"`) {
		t.Errorf("clock: %d %s", code, answer)
	}
}
