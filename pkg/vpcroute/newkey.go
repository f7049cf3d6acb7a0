package vpcroute

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
)

// keyCheck is how often the controller asks whether another access key is in use.
const keyCheck = 5 * time.Second

// watchKey makes a pass that waits for nothing when another access key comes into use.
func (c *Controller) watchKey(ctx context.Context) {
	if c.opts.KeyGeneration == nil {
		return
	}
	generation := c.opts.KeyGeneration(ctx)
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		now := c.opts.KeyGeneration(ctx)
		if now == generation {
			return
		}
		generation = now
		klog.FromContext(ctx).Info("Another access key is in use; retrying what the cloud rejected")
		c.newKey.Store(true)
		c.Resync()
	}, keyCheck)
}

// forgetRefusals makes everything due that failed.
func (p *pass) forgetRefusals() {
	clear(p.backoff)
	clear(p.quota)
	p.writer.mu.Lock()
	clear(p.writer.failed)
	p.writer.mu.Unlock()
	p.writer.network.retry()
}
