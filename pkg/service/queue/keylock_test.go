package queue

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestKeyLock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var locks KeyLock
		unlock, _, err := locks.Lock(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		if other, _, err := locks.Lock(t.Context(), "b"); err != nil {
			t.Fatal(err)
		} else {
			other()
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, _, err := locks.Lock(ctx, "a"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("second holder: %v, want it to wait until its context ends", err)
		}
		held := make(chan struct{})
		go func() {
			again, _, err := locks.Lock(t.Context(), "a")
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
