package initor

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
)

// pauses between attempts: quick at first, because most failures of a starting node pass at once, and spread out, because
// a thousand nodes may run this at the same moment.
var pauses = wait.Backoff{Duration: 500 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 5, Cap: 10 * time.Second}

// retry makes attempts until one says that it is done, and returns that one's error. When ctx ends first, the error is that
// of the last attempt that ctx did not cut short, for it says what is wrong; it wraps ctx's cause too.
func retry(ctx context.Context, attempt func(context.Context) (done bool, err error)) error {
	var last error
	err := pauses.DelayFunc().Until(ctx, true, true, func(ctx context.Context) (bool, error) {
		done, err := attempt(ctx)
		if ctx.Err() == nil || last == nil {
			last = err
		}
		if !done && ctx.Err() == nil {
			klog.FromContext(ctx).Info("Trying again", "reason", err)
		}
		return done, nil
	})
	if err != nil {
		return fmt.Errorf("%w (%w)", last, context.Cause(ctx))
	}
	return last
}
