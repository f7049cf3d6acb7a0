package deploy

import (
	"testing"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// cloudThatSettles accepts a write only so long after the last one.
type cloudThatSettles struct {
	settle   time.Duration
	accepted time.Time
}

var errBusy = &alicloud.Error{Code: "OperationBusy", Status: 400}

func (c *cloudThatSettles) write(now time.Time) error {
	if now.Sub(c.accepted) < c.settle {
		return errBusy
	}
	c.accepted = now
	return nil
}

// TestPaceIsLearned: whatever time the cloud needs to settle, few calls are refused, and hardly any time is lost.
func TestPaceIsLearned(t *testing.T) {
	t.Parallel()
	for _, settle := range []time.Duration{0, 200 * time.Millisecond, time.Second, 5 * time.Second} {
		var m Memory
		now := time.Now()
		began := now
		cloud := &cloudThatSettles{settle: settle}
		refused, accepted := 0, 0
		for accepted < 500 {
			if wait := m.writeIn("lb-1", now); wait > 0 {
				now = now.Add(wait)
			}
			err := cloud.write(now)
			m.noteAnswer("lb-1", err, now)
			if err == nil {
				accepted++
				continue
			}
			refused++
			now = now.Add(2 * time.Second) // the next pass
		}
		if refused > 500/20 {
			t.Errorf("settle %s: %d of %d calls refused", settle, refused, accepted)
		}
		if took, least := now.Sub(began), 500*settle; settle >= time.Second && took > least*13/10 {
			t.Errorf("settle %s: 500 calls took %s, at least %s", settle, took, least)
		}
		t.Logf("settle %s: %d refused, %s", settle, refused, now.Sub(began))
	}
}
