package refusal

import (
	"errors"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// account creates load balancers as long as it has room, on behalf of Services that are called.
type account struct {
	*testing.T
	Creations

	mu     sync.Mutex // guards the rest
	limit  int
	room   int
	served []string
	tried  int
	// silent are Services whose passes do not get as far as a creation, and broken those with another refusal.
	silent, broken []string
}

func waiter(name string) Creator {
	return Creator{UID: types.UID(name), Name: types.NamespacedName{Namespace: "default", Name: name}}
}

func newAccount(t *testing.T) *account {
	t.Helper()
	a := &account{T: t, limit: 1}
	a.Wake = func(name types.NamespacedName) { _ = a.pass(name.Name) }
	return a
}

// pass makes a pass over a Service.
func (a *account) pass(name string) error {
	a.mu.Lock()
	silent, limit := slices.Contains(a.silent, name), a.limit
	a.mu.Unlock()
	if silent {
		return nil
	}
	return a.Create(waiter(name), limit, func() error {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.tried++
		switch {
		case slices.Contains(a.broken, name):
			return &alicloud.Error{Action: "CreateLoadBalancer", Code: "Forbidden.RAM", Status: http.StatusForbidden}
		case a.room == 0:
			return &alicloud.Error{Action: "CreateLoadBalancer", Code: "QuotaExceeded.LoadBalancersNum", Status: http.StatusBadRequest}
		}
		a.room--
		a.served = append(a.served, name)
		return nil
	})
}

// now changes what passes find.
func (a *account) now(change func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	change()
}

// waits has Services begin to wait, and checks that only the first of them made a call.
func (a *account) waits(names ...string) {
	a.Helper()
	for i, name := range names {
		err := a.pass(name)
		if !alicloud.IsQuota(err) || IsHeld(err) != (i > 0) {
			a.Errorf("%s got %v", name, err)
		}
	}
	a.now(func() {
		if a.tried != 1 {
			a.Errorf("%d calls, want 1", a.tried)
		}
	})
}

func (a *account) wantServed(after time.Duration, names ...string) {
	a.Helper()
	time.Sleep(after)
	synctest.Wait()
	a.now(func() {
		if !slices.Equal(a.served, names) {
			a.Errorf("%v got load balancers, want %v", a.served, names)
		}
	})
}

// TestCreationsTakeTurns: those that wait try one after the other, and a success has the next one try at once.
func TestCreationsTakeTurns(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]func(a *account){
		"an hour": func(a *account) {
			a.wantServed(time.Hour)
			a.now(func() {
				if a.tried < 20 || a.tried > 30 {
					a.Errorf("%d calls", a.tried)
				}
			})
		},
		"room is found": func(a *account) {
			a.now(func() { a.room = 2 })
			a.wantServed(creationPause, "a", "b")
		},
		"a deletion": func(a *account) {
			a.now(func() { a.room = 1 })
			a.Freed()
			a.wantServed(0, "a")
		},
		"a larger quota": func(a *account) {
			a.now(func() { a.room, a.limit = 2, 3 })
			_ = a.pass("c") // as all Services are reconciled
			a.wantServed(0, "a", "b")
		},
		"one does not try": func(a *account) {
			a.now(func() { a.silent, a.room = []string{"a"}, 1 })
			a.wantServed(creationPause)
			a.wantServed(turn, "b")
		},
		"one needs none any more": func(a *account) {
			a.Leave("a")
			a.now(func() { a.room = 1 })
			a.wantServed(creationPause, "b")
		},
		"one is refused for another reason": func(a *account) {
			a.now(func() { a.broken, a.room = []string{"a"}, 1 })
			a.wantServed(creationPause, "b")
		},
		"one is left": func(a *account) {
			a.Leave("a")
			a.Leave("b")
			for range 2 {
				if err := a.pass("c"); !IsHeld(err) {
					a.Errorf("the only one that waits got %v, want that it waits", err)
				}
			}
			a.now(func() { a.room = 1 })
			a.Freed()
			a.wantServed(0, "c")
		},
		"one is left, and nobody makes a pass over it": func(a *account) {
			a.Leave("a")
			a.Leave("b")
			a.wantServed(2 * creationPause)
			a.now(func() {
				if a.tried != 3 { //nolint:mnd // that of the first one, and one after each pause
					a.Errorf("%d calls", a.tried)
				}
				a.room = 1
			})
			a.wantServed(creationPause, "c")
		},
		"one is left, and does not try": func(a *account) {
			a.Leave("a")
			a.Leave("b")
			a.now(func() { a.silent, a.room = []string{"c"}, 1 })
			a.wantServed(creationPause + turn)
			a.now(func() { a.silent = nil })
			if err := a.pass("c"); err != nil {
				a.Errorf("its turn has lapsed, and it got %v", err)
			}
		},
		"all are served": func(a *account) {
			a.now(func() { a.room = 3 })
			a.wantServed(creationPause, "a", "b", "c")
			a.now(func() { a.room = 1 })
			if err := a.pass("d"); err != nil {
				a.Errorf("%v", err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				a := newAccount(t)
				a.waits("a", "b", "c")
				test(a)
			})
		})
	}
}

// TestTurnLapses: a call without an answer, and a panic in the middle of one, keep no other Service waiting for long.
func TestTurnLapses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAccount(t)
		a.waits("a", "b", "c")
		a.now(func() { a.silent = []string{"a"} })
		time.Sleep(creationPause)
		synctest.Wait()
		if _, err := a.beginAttempt(waiter("a"), 1); err != nil {
			t.Fatalf("it is its turn, and it got %v", err)
		}
		if err := a.pass("c"); !IsHeld(err) {
			t.Errorf("another one got %v", err)
		}
		a.now(func() { a.room = 1 })
		a.wantServed(turn, "b")
	})
}

// TestRefusedDuringADeletion: a load balancer is deleted while another one is asked for, too early for it. The refusal proves nothing about
// the new room.
func TestRefusedDuringADeletion(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAccount(t)
		refused := &alicloud.Error{Action: "CreateLoadBalancer", Code: "QuotaExceeded.LoadBalancersNum", Status: http.StatusBadRequest}
		err := a.Create(waiter("a"), 1, func() error {
			a.now(func() { a.room = 1 })
			a.Freed()
			return refused
		})
		if !errors.Is(err, refused) {
			t.Errorf("got %v, want the refusal", err)
		}
		a.wantServed(time.Second, "a")
	})
}

// TestTurnsWithoutWake: where nobody is called, the turn is whose pass comes first.
func TestTurnsWithoutWake(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAccount(t)
		a.Wake = nil
		a.waits("a", "b", "c")
		time.Sleep(creationPause)
		if err := a.pass("c"); err == nil || IsHeld(err) {
			t.Errorf("got %v, want a refusal", err)
		}
		if err := a.pass("b"); !IsHeld(err) {
			t.Errorf("got %v, want that it waits", err)
		}
		a.now(func() { a.room = 1 })
		time.Sleep(creationPause)
		if err := a.pass("b"); err != nil {
			t.Error(err)
		}
		if err := a.pass("a"); !errors.As(err, new(*alicloud.Error)) || IsHeld(err) {
			t.Errorf("after a success got %v, want a refusal", err)
		}
	})
}
