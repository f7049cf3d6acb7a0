package deploy

import (
	"context"
	"maps"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/model"
)

// After a write a CLB is busy for a time that no document gives and that grows with it. Calls that come sooner are refused, and count
// towards the rate limit of the action all the same.
const (
	// minSettle is the first guess after an answer "busy".
	minSettle = 100 * time.Millisecond
	// maxSettle is how long after a write an answer "busy" can be due to it.
	maxSettle = 10 * time.Second
)

// pace is what is known of how close together the writes on one CLB may be.
type pace struct {
	// last is when the last write ended that the CLB accepted.
	last time.Time
	// settle is how long after that the next one waits, 0 while no answer was "busy".
	settle time.Duration
	// tooShort is the longest time that was not enough.
	tooShort time.Duration
}

// noteAccepted: a little less may do.
func (p *pace) noteAccepted(now time.Time) {
	p.last = now
	p.settle = max(p.tooShort*21/20, p.settle*19/20) //nolint:mnd // 5 % down, and stays 5 % above
	p.tooShort -= p.tooShort / 2000                  //nolint:mnd // forgotten slowly: an attempt costs a call
}

// noteRefused: it takes longer, about twice as long as long as nothing better is known.
func (p *pace) noteRefused(now time.Time, guess time.Duration) {
	waited := now.Sub(p.last)
	switch {
	case waited > maxSettle: // somebody else's write keeps the CLB busy
		return
	case p.settle == 0:
		p.settle = max(minSettle, 2*waited, guess) //nolint:mnd // twice
	case waited > p.tooShort*3/2: //nolint:mnd // far from what was known
		p.settle = min(maxSettle, max(p.settle, 2*waited)) //nolint:mnd // twice
	default:
		p.settle = min(maxSettle, max(p.settle, waited*6/5)) //nolint:mnd // a fifth more
	}
	p.tooShort = max(p.tooShort, waited)
}

// writeIn returns how long the next write on a CLB has to wait.
func (m *Memory) writeIn(loadBalancerID string, now time.Time) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.paces[loadBalancerID]
	if known.settle == 0 {
		return 0
	}
	return known.last.Add(known.settle).Sub(now)
}

// noteAnswer learns from the answer to a write on a CLB.
func (m *Memory) noteAnswer(loadBalancerID string, err error, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.paces == nil {
		m.paces = map[string]pace{}
	}
	known := m.paces[loadBalancerID]
	switch {
	case err == nil:
		known.noteAccepted(now)
	case alicloud.IsBusy(err):
		known.noteRefused(now, m.settle)
	}
	if known.settle > 0 {
		m.settle = known.settle
	}
	m.paces[loadBalancerID] = known
}

// forgetCLB drops what is known of a CLB that is gone.
func (m *Memory) forgetCLB(loadBalancerID string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.paces, loadBalancerID)
	maps.DeleteFunc(m.vacancies, func(place vacancy, _ *model.Listener) bool { return place.loadBalancerID == loadBalancerID })
}

// pauseWrites waits until the CLB has settled as far as its answers have shown. It holds no worker meanwhile.
func (a *Applier) pauseWrites(ctx context.Context) error {
	left := a.memory.writeIn(a.model.LoadBalancer.ID, time.Now())
	if left <= 0 {
		return nil
	}
	waiting := alicloud.WaitingOf(ctx)
	if waiting.Parked != nil {
		waiting.Parked()
	}
	if waiting.Resumed != nil {
		defer waiting.Resumed()
	}
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-waiting.Interrupt:
		return alicloud.ErrInterrupted
	case <-ctx.Done():
		return ctx.Err()
	}
}

// callOnce makes a write on the CLB and counts it.
func (a *Applier) callOnce(ctx context.Context, write func() error) error {
	if err := a.pauseWrites(ctx); err != nil {
		return err
	}
	err := write()
	a.Writes++
	if err == nil {
		a.Progress = true
	}
	if id := a.model.LoadBalancer.ID; id != "" {
		a.memory.noteAnswer(id, err, time.Now())
	}
	return err
}
