package service

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/controller-manager/pkg/healthz"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/waits"
)

var errStuck = errors.New("the pass does not end")

// health knows since when each Service is being worked on.
type health struct {
	mu      sync.Mutex // guards started
	started map[types.NamespacedName]time.Time
}

func newHealth() *health { return &health{started: map[types.NamespacedName]time.Time{}} }

// trackPass notes the start of a pass and returns the function that notes its end.
func (h *health) trackPass(key types.NamespacedName) func() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.started[key] = time.Now()
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.started, key)
	}
}

// pausePass notes that the Service's pass waits for the rate limit. With thousands of ports that may take hours.
func (h *health) pausePass(key types.NamespacedName) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.started, key)
}

// resumePass notes that the waiting is over.
func (h *health) resumePass(key types.NamespacedName) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.started[key] = time.Now()
}

// Check implements healthz.UnnamedHealthChecker: it fails when a pass does not end.
func (h *health) Check(*http.Request) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	for key, since := range h.started {
		if age := time.Since(since); age > waits.PassOfService {
			return fmt.Errorf("a pass over Service %s has been running for %s: %w", key, age.Round(time.Second), errStuck)
		}
	}
	return nil
}

// HealthChecker implements controller.HealthCheckable.
func (c *Controller) HealthChecker() healthz.UnnamedHealthChecker { return c.health }

// Working returns how many passes are under way. Those that wait for the rate limit do not count.
func (c *Controller) Working() int {
	c.health.mu.Lock()
	defer c.health.mu.Unlock()
	return len(c.health.started)
}
