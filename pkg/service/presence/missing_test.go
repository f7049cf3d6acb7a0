package presence

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/waits"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// TestMissingNeedsASecondRead: what one read lacks is not gone yet, and what comes back was never missing.
func TestMissingNeedsASecondRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, known := absences(ours), Missing{}
		for i, read := range []struct {
			after   time.Duration
			missing bool
			waits   bool
		}{
			{missing: false},
			{missing: true, waits: true},
			{after: waits.LoadBalancerMissing - 1, missing: true, waits: true},
			{after: 1, missing: true}, // confirmed
			{missing: true, waits: true},
			{after: waits.LoadBalancerMissing, missing: false},
			{missing: true, waits: true}, // since now, not since before it came back
			{after: waits.LoadBalancerMissing, missing: true},
		} {
			time.Sleep(read.after)
			var err error
			known, err = m.Confirm(known, read.missing, "a group was not found")
			if errors.As(err, new(*problem.WaitError)) != read.waits {
				t.Errorf("read %d: %v", i, err)
			}
		}
	})
}
