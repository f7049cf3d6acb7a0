package limits

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// Usage is how full the current window of an action is.
type Usage struct {
	Product, Action string
	Calls           int
	Quota           Quota
	// Ends is when the window makes room again.
	Ends time.Time
}

// Usage returns the windows that are open now and have counted calls, the fullest first.
func (w *Windows) Usage(now time.Time) []Usage {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	var open []Usage
	for key, u := range w.used {
		product, action, _ := strings.Cut(key, "/")
		if ends := u.start.Add(u.quota.Window); now.Before(ends) {
			open = append(open, Usage{Product: product, Action: action, Calls: u.calls, Quota: u.quota, Ends: ends})
		}
	}
	slices.SortFunc(open, func(a, b Usage) int {
		return cmp.Or(b.Calls*a.Quota.Calls-a.Calls*b.Quota.Calls, strings.Compare(a.Product+a.Action, b.Product+b.Action))
	})
	return open
}
