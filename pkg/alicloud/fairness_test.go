package alicloud

import (
	"context"
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

// TestCrowdDoesNotHoldUpANeighbour: the calls for the first address of another tenant's Service, and the removal of its dead backend server,
// take their turns between those of a tenant with thousands in the queue.
func TestCrowdDoesNotHoldUpANeighbour(t *testing.T) {
	t.Parallel()
	creation := []string{"CreateLoadBalancer", "CreateVServerGroup", "CreateLoadBalancerTCPListener", "StartLoadBalancerListener", "SetLoadBalancerName"}
	for name, test := range map[string]struct {
		crowd, neighbour Priority
		actions          []string
		goal             time.Duration
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
					if err := l.wait(WithWaiting(ctx, Waiting{Tenant: "neighbour", Priority: test.neighbour, Since: start}), action); err != nil {
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

// TestTenantsTakeTurns: whoever has many calls in the queue gets as many places as each of the others.
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
