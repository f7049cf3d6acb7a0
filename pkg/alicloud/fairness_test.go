package alicloud

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// crowd has a tenant wait with thousands of calls of each action, as 40 Services with 60 ports do, until the test ends.
func crowd(ctx context.Context, t *testing.T, l *limiter, priority Priority, actions ...string) {
	t.Helper()
	for _, action := range actions {
		for range 2400 {
			go func() {
				_ = l.wait(WithWaiting(ctx, Waiting{Tenant: "crowd", Priority: priority, Since: time.Now()}), action) // ends with the test
			}()
		}
	}
	synctest.Wait()
	time.Sleep(10 * time.Minute) // all of them have grown old
}

// TestCrowdDoesNotHoldUpANeighbour: the calls for the first address of another tenant's Service, and the removal of its dead backend
// server, take their turns between those of a tenant with thousands in the queue.
func TestCrowdDoesNotHoldUpANeighbour(t *testing.T) {
	t.Parallel()
	creation := []string{"CreateLoadBalancer", "CreateVServerGroup", "CreateLoadBalancerTCPListener", "StartLoadBalancerListener",
		"SetLoadBalancerName"}
	for name, test := range map[string]struct {
		crowd, neighbor Priority
		actions         []string
		goal            time.Duration
	}{
		"first address":               {PriorityListener, PriorityListener, creation, 30 * time.Second},
		"dead backend":                {PriorityRemoval, PriorityRemoval, []string{"RemoveVServerGroupBackendServers"}, 5 * time.Second},
		"dead backend, old additions": {PriorityBackend, PriorityRemoval, []string{"SetVServerGroupAttribute"}, 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, end := context.WithCancel(t.Context())
				defer synctest.Wait()
				defer end()
				l := newLimiter(publishedQuotas)
				crowd(ctx, t, l, test.crowd, test.actions...)
				start := time.Now()
				for _, action := range test.actions {
					if err := l.wait(WithWaiting(ctx, Waiting{Tenant: "neighbor", Priority: test.neighbor, Since: start}), action); err != nil {
						t.Fatal(err)
					}
				}
				if took := time.Since(start); took > test.goal {
					t.Errorf("took %s, goal %s", took, test.goal)
				}
			})
		})
	}
}

// TestTenantsTakeTurns: whoever has many calls in the queue gets as many places as each of the others. What came before there was a queue
// went at once.
func TestTenantsTakeTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(map[string]quota{"SetX": {30, time.Minute}})
		ctx, end := context.WithCancel(t.Context())
		admitted := map[string]int{}
		done := make(chan string)
		for tenant, calls := range map[string]int{"a": 200, "b": 100, "c": 100} {
			for range calls {
				go func() {
					if l.wait(WithWaiting(ctx, Waiting{Tenant: tenant, Priority: PriorityBackend}), "SetX") == nil {
						done <- tenant
					}
				}()
			}
		}
		for range 27 {
			<-done
		}
		for range 90 {
			admitted[<-done]++
		}
		end()
		synctest.Wait()
		for tenant, calls := range admitted {
			if calls < 20 || calls > 40 {
				t.Errorf("%d of 90 places went to %s, want a third", calls, tenant)
			}
		}
	})
}

// TestTargetsTakeTurns: while the quota is used up, what changes again after each write is written to once per window, as long as others
// wait, also if its calls wait in the place of a pass that gave way to one that knows more.
func TestTargetsTakeTurns(t *testing.T) {
	t.Parallel()
	for name, inPlace := range map[string]bool{"new calls": false, "calls in the place of others": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				began := time.Time{}
				if inPlace {
					began = time.Now().Add(-time.Minute)
				}
				takeTurns(t, began)
			})
		})
	}
}

// takeTurns has targets that change again and again wait since a time, zero for that of each call, and checks that they and others take
// turns.
func takeTurns(t *testing.T, since time.Time) {
	t.Helper()
	l := newLimiter(map[string]quota{"SetX": {30, time.Minute}})
	ctx, end := context.WithCancel(t.Context())
	admitted := map[string]int{}
	done := make(chan string)
	var running sync.WaitGroup
	for name, pause := range map[string]time.Duration{"restless": time.Millisecond, "a": time.Minute, "b": time.Minute} {
		for i := range 15 {
			target := name + strconv.Itoa(i)
			running.Go(func() {
				waiting := Waiting{Priority: PriorityBackend, Target: target}
				if name == "restless" {
					waiting.Since = since
				}
				for waiting.Pass = 1; l.wait(WithWaiting(ctx, waiting), "SetX") == nil; waiting.Pass++ {
					select {
					case done <- target:
						time.Sleep(pause)
					case <-ctx.Done():
					}
				}
			})
		}
	}
	for range 30 {
		<-done
	}
	for range 30 {
		admitted[<-done]++
	}
	end()
	running.Wait()
	for target, calls := range admitted {
		if calls > 1 {
			t.Errorf("%d calls for %s in a window", calls, target)
		}
	}
}

// TestRemovalBeforeOldAdditions: of one tenant's calls for an action, those that take out what no longer answers go before those that have
// waited for minutes, but for some places that keep these from waiting for ever.
func TestRemovalBeforeOldAdditions(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const removals = 45
		l := newLimiter(publishedQuotas)
		ctx, end := context.WithCancel(t.Context())
		crowd(ctx, t, l, PriorityBackend, sharedAction)
		start := time.Now()
		done := make(chan struct{}, removals)
		for range removals {
			go func() {
				if l.wait(WithWaiting(ctx, Waiting{Tenant: "crowd", Priority: PriorityRemoval}), sharedAction) == nil {
					done <- struct{}{}
				}
			}()
		}
		for range removals {
			<-done
		}
		if took, most := time.Since(start), time.Minute; took > most {
			t.Errorf("%d removals took %s, want %s at most", removals, took, most)
		}
		end()
		synctest.Wait()
	})
}

// TestRemovalBehindManyTenants: the queues of hundreds of other tenants do not hold up a call that takes out what no longer answers,
// however long they have waited.
func TestRemovalBehindManyTenants(t *testing.T) {
	t.Parallel()
	const tenants, callsOfEach, longest = 500, 4, 5 * time.Second
	for _, age := range []time.Duration{10 * time.Second, 45 * time.Second, 5 * time.Minute} {
		for _, priority := range []Priority{PriorityBackend, PriorityAttribute} {
			synctest.Test(t, func(t *testing.T) {
				ctx, end := context.WithCancel(t.Context())
				defer synctest.Wait()
				defer end()
				l := newLimiter(publishedQuotas)
				for i := range tenants * callsOfEach {
					go func() {
						// Canceled at the end.
						_ = l.wait(WithWaiting(ctx, Waiting{Tenant: strconv.Itoa(i % tenants), Priority: priority, Since: time.Now()}), sharedAction)
					}()
				}
				synctest.Wait()
				time.Sleep(age)
				began := time.Now()
				if err := l.wait(WithWaiting(ctx, Waiting{Tenant: "neighbor", Priority: PriorityRemoval, Since: began}), sharedAction); err != nil {
					t.Fatal(err)
				}
				if took := time.Since(began); took > longest {
					t.Errorf("behind calls of priority %d that have waited for %s, the removal waits %s", priority, age, took)
				}
			})
		}
	}
}

// TestWrittenAgain: what another pass has written to in a window waits for its second turn, also if both passes were made at the same
// instant. The calls of one pass belong together.
func TestWrittenAgain(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 30, 0, time.UTC)
	for name, test := range map[string]struct {
		call Waiting
		at   time.Time
		want bool
	}{
		"same pass":      {Waiting{Target: "a", Pass: 1}, now, false},
		"another pass":   {Waiting{Target: "a", Pass: 2}, now, true},
		"no pass":        {Waiting{Target: "a"}, now, true},
		"another target": {Waiting{Target: "b", Pass: 2}, now, false},
		"next window":    {Waiting{Target: "a", Pass: 2}, now.Add(time.Minute), false},
	} {
		q := newLimiter(publishedQuotas).queueLocked(sharedAction)
		q.writes(Waiting{Target: "a", Pass: 1}, now)
		if again := q.again(&waiter{Waiting: test.call}, test.at); again != test.want {
			t.Errorf("%s: again %v", name, again)
		}
	}
}
