package slb

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

func apiError(code string) error {
	return fmt.Errorf("attempt: %w", &alicloud.Error{Action: "AddVServerGroupBackendServers", Code: code, Status: 400, RequestID: time.Now().String()})
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
		{"failure", apiError(failure), false, 0, 0},
		{"busy and failure", errors.Join(apiError(busy), apiError(failure)), false, 0, 0},
		{"wrapped", fmt.Errorf("pass: %w", errors.Join(apiError(busy), apiError(failure))), false, 0, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(20 * time.Second) // the bubble's clock starts at a full minute
				wait, quiet := waitTime(test.err)
				if quiet != test.quiet || wait < test.min || wait > test.max {
					t.Errorf("waitTime = %s, %v; want %s to %s, %v", wait, quiet, test.min, test.max, test.quiet)
				}
			})
		})
	}
}

func TestSignatureLeavesOutTheRequest(t *testing.T) {
	t.Parallel()
	first, second := signature(apiError("InternalError")), signature(apiError("InternalError"))
	if first != second {
		t.Errorf("two attempts that fail alike differ: %q, %q", first, second)
	}
	if first == signature(apiError("Forbidden.RAM")) {
		t.Error("two different failures look alike")
	}
}

func TestBusyIsQuietAndReadsNothing(t *testing.T) {
	t.Parallel()
	w := settled(t, testService("web", 80))
	w.addNode("d")
	w.fault(map[string]any{"action": "AddVServerGroupBackendServers", "code": "BackendServer.configuring", "status": 409, "times": 3})
	for range 3 {
		wait, err := w.Reconcile(t.Context(), w.get("web"))
		if err != nil || wait < minBusyWait || wait > maxBusyWait {
			t.Errorf("Reconcile = %s, %v; want a short wait", wait, err)
		}
	}
	w.mustPass("web")
	if reads := len(w.emulator.Calls(w.mark)) - len(writesOf(w.calls())); reads != 0 {
		t.Errorf("%d reads, want none: a refused call changes nothing", reads)
	}
	if events := w.told(); len(events) != 1 {
		t.Errorf("events = %q, want only that of the success", events)
	}
}

func TestBusyForTooLongIsDoubted(t *testing.T) {
	t.Parallel()
	w := settled(t, testService("web", 80))
	w.addNode("d")
	w.fault(map[string]any{"action": "AddVServerGroupBackendServers", "code": "BackendServer.configuring", "status": 409, "times": 0})
	for range maxBusyInRow - 1 {
		w.mustPass("web")
	}
	if err := w.pass("web"); err == nil {
		t.Error("nobody hears that the group never becomes ready")
	}
	w.calls()
	if err := w.pass("web"); err == nil {
		t.Error("no error although the group is still not ready")
	}
	if calls := w.calls(); len(calls) == len(writesOf(calls)) {
		t.Errorf("calls = %v, want a look at what is there", calls)
	}
	if events := w.told(); len(events) != 1 {
		t.Errorf("events = %q, want one", events)
	}
}

func TestThrottledWaitsForTheNextMinute(t *testing.T) {
	t.Parallel()
	w := settled(t, testService("web", 80))
	w.addNode("d")
	w.fault(map[string]any{"action": "AddVServerGroupBackendServers", "code": "Throttling.User", "status": 400})
	before := time.Now()
	wait, err := w.Reconcile(t.Context(), w.get("web"))
	if err != nil {
		t.Fatal(err)
	}
	next := before.Truncate(time.Minute).Add(time.Minute)
	if at := time.Now().Add(wait); at.Before(next) || at.After(next.Add(maxThrottleJitter+time.Second)) {
		t.Errorf("next pass at %s, want it just after %s", at, next)
	}
	if events := w.told(); len(events) != 0 {
		t.Errorf("events = %q, want none", events)
	}
}

func TestKeyLock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var locks keyLock
		unlock, err := locks.lock(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		if other, err := locks.lock(t.Context(), "b"); err != nil {
			t.Fatal(err)
		} else {
			other()
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := locks.lock(ctx, "a"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("second holder: %v, want it to wait until its context ends", err)
		}
		held := make(chan struct{})
		go func() {
			again, err := locks.lock(t.Context(), "a")
			if err == nil {
				again()
			}
			close(held)
		}()
		synctest.Wait()
		unlock()
		<-held
		if len(locks.locks) != 0 {
			t.Errorf("%d entries are left", len(locks.locks))
		}
	})
}
