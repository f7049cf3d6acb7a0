package vpcroute

import (
	"math/rand/v2"
	"slices"
	"time"
)

// Times of a pass.
const (
	// confirmEvery is how long after a batch its table is read although more batches wait: nodes whose routes work by then need
	// not wait for the last batch. A read that confirms a page of entries comes earlier, after confirmPage.
	confirmEvery = 30 * time.Second
	// confirmPage counts once for each page of the table, and bounds confirmEvery from below, so that large tables are not read
	// more often than they are written.
	confirmPage = 5 * time.Second
	// pageEntries is how many entries a page has.
	pageEntries = 500
	// firstRead is the wait before a read that hopes for a fast cloud.
	firstRead = 50 * time.Millisecond
	// againConfirm and maxConfirm bound the wait between further reads.
	againConfirm = 200 * time.Millisecond
	maxConfirm   = 5 * time.Second
	// collectFor is how long routes wait for those of further nodes that are about to join, so that they share a call.
	collectFor = 2 * time.Second
)

// schedule says when the next pass is due, and how fresh the tables must be then.
type schedule struct {
	// readAfter is the oldest read that is still good enough.
	readAfter time.Time
	// drift and poll are when the tables are to be read again: for what others changed, and for what the cloud is still
	// at work on. poll is zero when nothing settles; polls counts the reads for it.
	drift, poll time.Time
	polls       int
	// retry is when this pass wants to be repeated although nothing happened; zero for never.
	retry time.Time
	// held is since when routes wait for further ones, zero when none do, and holding says that they do at the end of this pass.
	held    time.Time
	holding bool
}

// begin starts a pass and reports whether the tables are due to be read for drift.
func (s *schedule) begin(now time.Time) (drifting bool) {
	s.retry, s.holding = time.Time{}, false
	drifting = !now.Before(s.drift)
	if drifting || (!s.poll.IsZero() && !now.Before(s.poll)) {
		s.readAfter = now
	}
	return drifting
}

// retryAt makes the next pass come at that time at the latest; zero is no time.
func (s *schedule) retryAt(at time.Time) {
	if !at.IsZero() && (s.retry.IsZero() || at.Before(s.retry)) {
		s.retry = at
	}
}

// hold reports whether so many new routes wait for further ones.
func (s *schedule) hold(creations, batch, arriving int, ready, now time.Time) bool {
	if s.held.IsZero() {
		s.held = now
	}
	until := holdUntil(creations, batch, arriving, s.held, ready, now)
	if until.IsZero() {
		s.held = time.Time{}
		return false
	}
	s.holding = true
	s.retryAt(until)
	return true
}

// holdUntil is until when new routes wait that fill no batch: while the cloud would refuse one anyway, and, while further nodes
// are about to join, for [collectFor]. Zero says that they do not wait.
func holdUntil(creations, batch, arriving int, since, ready, now time.Time) time.Time {
	if creations == 0 || creations >= batch {
		return time.Time{}
	}
	until := ready
	if collected := since.Add(collectFor); arriving > 0 && collected.After(until) {
		until = collected
	}
	if !until.After(now) {
		return time.Time{}
	}
	return until
}

// next decides when the next pass is due without an event. settle is how long the cloud was seen to need for a batch.
func (s *schedule) next(d *desired, tables []*table, plans []*plan, changes int, settle time.Duration) time.Time {
	now := time.Now()
	due := s.drift
	soon := func(at time.Time) {
		if at.Before(due) {
			due = at
		}
	}
	if !s.retry.IsZero() {
		soon(s.retry)
	}
	for _, node := range d.withoutCIDR {
		if at := node.CreationTimestamp.Add(cidrGrace); at.After(now) {
			soon(at)
		}
	}
	switch {
	case changes > 0 || s.holding:
		// The next batch follows; a read only when one is due, or nothing is left to write.
		s.poll, s.polls = time.Time{}, 0
		if slices.ContainsFunc(tables, func(t *table) bool { return t.confirmDue(now) }) {
			s.readAfter = now
			soon(now)
		}
		if changes > 0 {
			soon(now)
		}
	case !slices.ContainsFunc(plans, (*plan).settling):
		s.poll, s.polls = time.Time{}, 0
	default:
		if !now.Before(s.poll) {
			s.poll = now.Add(confirmAfter(s.polls, settle))
			s.polls++
		}
		soon(s.poll)
	}
	return due
}

// confirmDue reports whether the table has unconfirmed entries for so long, or so many of them, that they are worth a read.
func (t *table) confirmDue(now time.Time) bool {
	least := confirmPage * time.Duration(1+t.custom/pageEntries)
	age := now.Sub(t.unread)
	return t.unconfirmed > 0 && (age >= max(least, confirmEvery) || age >= least && t.unconfirmed >= pageEntries)
}

// confirmAfter is the wait before the next read for an entry that the cloud is at work on, after so many of them. settle
// is how long the cloud was seen to need: the first read then waits for it. While that is not known (0) the first read
// follows the write almost at once, because a cloud may be that fast, and the second when the work should be done.
func confirmAfter(reads int, settle time.Duration) time.Duration {
	if settle > 0 {
		if reads == 0 {
			return settle
		}
		reads++
	}
	switch reads {
	case 0:
		return firstRead
	case 1:
		return likelySettle - firstRead
	default:
		return min(maxConfirm, againConfirm<<min(reads-2, 5))
	}
}

// jittered spreads a period over nine to eleven tenths of it, so that clusters of one account do not read together.
func jittered(period time.Duration) time.Duration {
	return period*9/10 + rand.N(period/5)
}
