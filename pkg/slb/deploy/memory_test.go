package deploy

import (
	"errors"
	"testing"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/model"
)

// TestRefusedServerIsTriedAgain: at once after its first refusal, then after minutes, at intervals that double up to a limit.
func TestRefusedServerIsTriedAgain(t *testing.T) {
	t.Parallel()
	var m Memory
	c := change{op: model.OpAddBackends, groupID: "rsp-1", backend: alicloud.Backend{Weight: 100}}
	refusal, now := errors.New("refused"), time.Now()
	for _, want := range []time.Duration{0, time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 8 * time.Minute} {
		m.refuse(c, refusal, now)
		if before := m.refused(c, now.Add(want-time.Second)); want > 0 && before == nil {
			t.Errorf("tried again before %s", want)
		}
		now = now.Add(want)
		if before := m.refused(c, now); before != nil {
			t.Errorf("not tried again after %s", want)
		}
	}
	other := c
	other.backend.Weight = 50
	m.refuse(c, refusal, now)
	if m.refused(other, now) != nil {
		t.Error("another change waits, too")
	}
	m.accept(c)
	m.refuse(c, refusal, now)
	if m.refused(c, now) != nil {
		t.Error("a refusal after a success waits as if it was not the first")
	}
}

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
			if wait := m.wait("lb-1", now); wait > 0 {
				now = now.Add(wait)
			}
			err := cloud.write(now)
			m.note("lb-1", err, now)
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
