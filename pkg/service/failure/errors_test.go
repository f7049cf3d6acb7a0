package failure

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

func apiError(code string) error {
	return fmt.Errorf("attempt: %w",
		&alicloud.Error{Action: "AddVServerGroupBackendServers", Code: code, Status: 400, RequestID: time.Now().String()})
}

func TestWaitTime(t *testing.T) {
	t.Parallel()
	busy, throttled, failure := "SystemBusy", "Throttling.User", "InternalError"
	for _, test := range []struct {
		name     string
		err      error
		quiet    bool
		min, max time.Duration
	}{
		{"busy", apiError(busy), true, minBusyWait, maxBusyWait},
		{"throttled at 20 s past", apiError(throttled), true, 40 * time.Second, 40*time.Second + maxThrottleJitter},
		{"busy and throttled", errors.Join(apiError(busy), apiError(throttled)), true, 40 * time.Second, 40*time.Second + maxThrottleJitter},
		{"an action whose windows are seconds",
			&alicloud.Error{Product: "nlb", Action: "ListServerGroups", Code: throttled, Status: 400, RequestID: "1"}, true, 0, 2 * time.Second},
		{"failure", apiError(failure), false, 0, 0},
		{"busy and failure", errors.Join(apiError(busy), apiError(failure)), false, 0, 0},
		{"wrapped", fmt.Errorf("pass: %w", errors.Join(apiError(busy), apiError(failure))), false, 0, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(20 * time.Second) // the bubble's clock starts at a full minute
				wait, quiet := WaitTime(test.err)
				if quiet != test.quiet || wait < test.min || wait > test.max {
					t.Errorf("waitTime = %s, %v; want %s to %s, %v", wait, quiet, test.min, test.max, test.quiet)
				}
			})
		})
	}
}

func TestSignatureLeavesOutTheRequest(t *testing.T) {
	t.Parallel()
	first, second := Signature(apiError("InternalError")), Signature(apiError("InternalError"))
	if first != second {
		t.Errorf("two attempts that fail alike differ: %q, %q", first, second)
	}
	if first == Signature(apiError("Forbidden.RAM")) {
		t.Error("two different failures look alike")
	}
	for name, failed := range map[string]func(id string) error{
		"a wait": func(id string) error {
			err := &alicloud.Error{Action: "CreateListener", Code: "ResourceNotFound.serverGroup", Status: 404, RequestID: id}
			return &problem.WaitError{Reason: err.Error(), Err: err}
		},
		"a job": func(id string) error {
			return fmt.Errorf("pass: %w", &alicloud.JobError{Job: alicloud.Job(id), Op: "create listener", Text: "create listener tcp:80 failed"})
		},
	} {
		if first, second := Signature(failed("id-1")), Signature(failed("id-2")); first != second {
			t.Errorf("%s that fails alike differs: %q, %q", name, first, second)
		}
	}
}

// TestFailureText: ten listeners that are refused for one reason are one text, and another reason is another.
func TestFailureText(t *testing.T) {
	t.Parallel()
	refused := func(port string, code string) error {
		return fmt.Errorf("create listener %s: %w", port,
			&alicloud.Error{Action: "CreateLoadBalancerTCPListener", Code: code, Message: "no", RequestID: port})
	}
	err := errors.Join(refused("80", "Forbidden.RAM"), refused("81", "Forbidden.RAM"),
		errors.Join(refused("82", "Forbidden.RAM"), refused("83", "OperationDenied")))
	want := "create listener 80: CreateLoadBalancerTCPListener: Forbidden.RAM: no (HTTP 0, request 80) (and 2 more for the same reason); " +
		"create listener 83: CreateLoadBalancerTCPListener: OperationDenied: no (HTTP 0, request 83)"
	if got := Text(err); got != want {
		t.Errorf("text\n%s\nwant\n%s", got, want)
	}
}
