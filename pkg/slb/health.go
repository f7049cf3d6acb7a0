package slb

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/controller-manager/pkg/healthz"
)

// stuckAfter is how long one pass may take. A call may wait a minute for the rate limit; a Service with fifty ports needs
// several such waits, but no pass needs this long.
const stuckAfter = 30 * time.Minute

var errStuck = errors.New("the pass does not end")

// health knows since when each Service is being worked on.
type health struct {
	mu      sync.Mutex // guards started
	started map[types.NamespacedName]time.Time
}

func newHealth() *health { return &health{started: map[types.NamespacedName]time.Time{}} }

// track notes the start of a pass and returns the function that notes its end.
func (h *health) track(key types.NamespacedName) func() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.started[key] = time.Now()
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.started, key)
	}
}

// Check implements healthz.UnnamedHealthChecker: it fails when a pass does not end.
func (h *health) Check(*http.Request) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	for key, since := range h.started {
		if age := time.Since(since); age > stuckAfter {
			return fmt.Errorf("Service %s is being worked on for %s: %w", key, age.Round(time.Second), errStuck)
		}
	}
	return nil
}

// HealthChecker implements controller.HealthCheckable.
func (c *Controller) HealthChecker() healthz.UnnamedHealthChecker { return c.health }
