package slb

import (
	"testing"
	"testing/synctest"
	"time"
)

// What the frame promises.
const (
	testResyncPeriod  = 10 * time.Minute
	testMinBusyWait   = 2 * time.Second
	testMaxBusyWait   = 5 * time.Second
	testThrottleDelay = 3 * time.Second
	testMaxBusyInRow  = 12
	testLongestCall   = 30 * time.Second
)

func TestBusyIsQuietAndReadsNothing(t *testing.T) {
	t.Parallel()
	w := settled(t, testService("web", 80))
	w.addNode("d")
	w.fault(map[string]any{"action": "AddVServerGroupBackendServers", "code": "BackendServer.configuring", "status": 409, "times": 3})
	for range 3 {
		wait, err := w.Reconcile(t.Context(), w.get("web"))
		if err != nil || wait < testMinBusyWait || wait > testMaxBusyWait {
			t.Errorf("Reconcile = %s, %v; want a short wait", wait, err)
		}
	}
	w.mustPass("web")
	if reads := len(w.emulator.Unread()) - len(writesOf(w.calls())); reads != 0 {
		t.Errorf("%d reads, want none: a refused call changes nothing", reads)
	}
	if events := w.newEvents(); len(events) != 1 {
		t.Errorf("events = %q, want only that of the success", events)
	}
}

func TestBusyForTooLongIsDoubted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := settled(t, testService("web", 80))
		w.addNode("d")
		w.fault(map[string]any{"action": "AddVServerGroupBackendServers", "code": "BackendServer.configuring", "status": 409, "times": 0})
		for range testMaxBusyInRow - 1 {
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
			t.Errorf("calls = %v, want a read of what is there", calls)
		}
		if events := w.newEvents(); len(events) != 1 {
			t.Errorf("events = %q, want one", events)
		}
	})
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
	if at := time.Now().Add(wait); at.Before(next) || at.After(next.Add(testThrottleDelay+time.Second)) {
		t.Errorf("next pass at %s, want it just after %s", at, next)
	}
	if events := w.newEvents(); len(events) != 0 {
		t.Errorf("events = %q, want none", events)
	}
}
