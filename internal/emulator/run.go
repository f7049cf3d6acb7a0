package emulator

import (
	"errors"
	"net/http"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
)

// run carries out a call. A latency is spent while the call holds its resources but not the store's lock, so that other
// calls go on and those that need the same resources find them busy.
func (e *Emulator) run(c *api.Call, latency time.Duration) (any, *api.Error) {
	if latency <= 0 {
		return e.apply(c, nil)
	}
	var holds []string
	busy := false
	if c.Action.Hold != nil {
		e.store.Update(func() {
			keys := c.Action.Hold(c)
			if busy = !e.store.Hold(keys); !busy {
				holds = keys
			}
		})
	}
	if busy {
		return nil, c.Action.Busy
	}
	e.wait(latency)
	c.Now = e.store.Now()
	return e.apply(c, holds)
}

// apply runs the action under the lock of its kind and releases what the call holds.
func (e *Emulator) apply(c *api.Call, holds []string) (result any, bad *api.Error) {
	var err error
	if c.Action.Kind == api.Read {
		e.store.View(func() {
			e.lag(c)
			result, err = c.Action.Run(c)
		})
	} else {
		e.store.Update(func() {
			if err = e.claim(c, holds); err != nil {
				return
			}
			result, err = c.Action.Run(c)
		})
		// Listeners follow before the caller has its answer: who created one can connect at once.
		e.fabric.Sync()
	}
	if err == nil {
		return result, nil
	}
	if errors.As(err, &bad) {
		return nil, bad
	}
	return nil, api.Errorf(http.StatusInternalServerError, "InternalError", "%v", err)
}

// lag makes a read as old as the switches say, if no fault makes it older. The caller has the lock.
func (e *Emulator) lag(c *api.Call) {
	c.ReplicaLag = max(c.ReplicaLag, time.Duration(e.store.ReplicaLag))
	c.TagSearchLag = max(c.TagSearchLag, time.Duration(e.store.TagSearchLag))
}

// claim gives back what the call holds during its latency, or checks that nobody else holds what it needs.
func (e *Emulator) claim(c *api.Call, holds []string) error {
	if holds != nil {
		e.store.Release(holds)
		return nil
	}
	if c.Action.Hold != nil && e.store.InUse(c.Action.Hold(c)) {
		return c.Action.Busy
	}
	return nil
}

// wait spends time unless the emulator is closed.
func (e *Emulator) wait(d time.Duration) {
	if d <= 0 {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-e.done:
	}
}
