package cloud

import (
	"errors"
	"fmt"
	"time"
)

// Now is the time in the cloud.
func (s *Store) Now() time.Time { return time.Now().Add(s.Ahead()) }

// Ahead is how far the clock of the cloud is ahead of that of the host.
func (s *Store) Ahead() time.Duration { return time.Duration(s.ahead.Load()) }

// maxAhead is how far the clock of the cloud can be ahead: 100 years. A sum of durations beyond 292 years would overflow, and set the clock
// back.
const maxAhead = 876_000 * time.Hour

// ErrClock means that the clock of the cloud cannot be set as asked.
var ErrClock = errors.New("the clock can be set forward only, at most 876000h ahead of the host")

// Advance sets the clock of the cloud forward: what is under way ends, and what has a time expires.
func (s *Store) Advance(d time.Duration) error {
	if d < 0 {
		return fmt.Errorf("advance by %s: %w", d, ErrClock)
	}
	var err error
	s.Update(func() { err = s.advanceLocked(d) })
	return err
}

func (s *Store) advanceLocked(d time.Duration) error {
	if ahead := s.Ahead(); d > maxAhead-ahead {
		return fmt.Errorf("advance by %s, now %s ahead: %w", d, ahead, ErrClock)
	}
	s.ahead.Add(int64(d))
	now := s.Now()
	for t, due := range s.timers {
		if left := due.Sub(now); left > 0 {
			// The clocks go at the same speed: what remains takes as long on the host.
			t.Reset(left)
			continue
		}
		t.Stop()
		delete(s.timers, t)
	}
	s.reapLocked(now)
	return nil
}

// announce signals a change after d: a status that is computed on reading changes without a write, and watchers (the
// network of listeners) must hear of it.
func (s *Store) announce(d time.Duration) {
	if s.stopped {
		return
	}
	var t *time.Timer
	t = time.AfterFunc(d, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if _, live := s.timers[t]; !live {
			return
		}
		delete(s.timers, t)
		s.reapLocked(s.Now())
		s.notifyLocked()
	})
	s.timers[t] = s.Now().Add(d)
}
