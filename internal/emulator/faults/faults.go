// Package faults decides which calls go wrong on purpose. It decides only; the emulator carries the decision out.
package faults

import (
	"cmp"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
)

// Drop says whether and when the connection breaks instead of an answer.
type Drop string

// DropBefore breaks before the action runs; DropAfter when it has run, so that its answer is lost.
const (
	DropBefore Drop = "before"
	DropAfter  Drop = "after"
)

// Rule is one injected fault.
type Rule struct {
	// Product restricts the rule to one product, for example nlb; "" matches all.
	Product string
	// Action is the action's name, or * for all.
	Action string
	// Kind restricts the rule to reads or writes; "" matches both.
	Kind api.Kind
	// Code and Status are the error to answer; "" injects none.
	Code   string
	Status int
	// After is how many matching calls pass first, counted from the rule's arrival.
	After int
	// Times is how many calls the rule hits; 0 means every one.
	Times int
	// Latency is added to the calls that are hit.
	Latency time.Duration
	Drop    Drop
	// FailItems makes that many items of a batch call fail with Code, instead of the whole call.
	FailItems int
	// Stale hides from a list what was created less than this time ago, ReplicaLag also from whoever asks by id.
	Stale, ReplicaLag time.Duration
	// TagSearchLag makes a search by tag see tags as they were this long ago.
	TagSearchLag time.Duration
	// Body takes the place of the body of a successful answer, as from a gateway in between. The action is carried out, unless Drop
	// is DropBefore. Nil leaves the answer alone.
	Body *string
	// Job ends the asynchronous part of the call in another way than success.
	Job api.JobFault
	// Probability makes the rule hit only some of the calls that it otherwise would, 0 < p < 1, drawn from Seed so that a run
	// can be repeated. 0 hits all.
	Probability float64
	Seed        uint64
}

// State is a rule with what it has seen.
type State struct {
	Rule
	Matched, Hit int
	draw         *rand.Rand
}

// Set is a list of rules. It is safe for concurrent use.
type Set struct {
	mu    sync.Mutex
	rules []*State // guarded by mu
}

// Add appends a rule.
func (s *Set) Add(r Rule) {
	s.mu.Lock()
	defer s.mu.Unlock()
	//nolint:gosec // chance in tests, repeatable by its seed
	s.rules = append(s.rules, &State{Rule: r, draw: rand.New(rand.NewPCG(r.Seed, r.Seed))})
}

// Clear removes every rule.
func (s *Set) Clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rules = nil
}

// List returns the rules with their counters.
func (s *Set) List() []State {
	s.mu.Lock()
	defer s.mu.Unlock()
	states := make([]State, 0, len(s.rules))
	for _, r := range s.rules {
		states = append(states, *r)
	}
	return states
}

// Outcome is what happens to one call.
type Outcome struct {
	Error   *api.Error
	Latency time.Duration
	Drop    Drop
	// FailItems items of a batch fail with ItemCode.
	FailItems int
	ItemCode  string
	// Stale, ReplicaLag, TagSearchLag, Body and Job are those of the rules.
	Stale, ReplicaLag, TagSearchLag time.Duration
	Body                            *string
	Job                             api.JobFault
}

// Next counts a call against every rule and returns what the first rule that hits it demands; the latencies of all rules
// that hit add up.
func (s *Set) Next(product, action string, kind api.Kind) Outcome {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out Outcome
	for _, r := range s.rules {
		if !r.hits(product, action, kind) {
			continue
		}
		out.Latency += r.Latency
		out.Stale, out.ReplicaLag = max(out.Stale, r.Stale), max(out.ReplicaLag, r.ReplicaLag)
		out.TagSearchLag = max(out.TagSearchLag, r.TagSearchLag)
		out.Body = cmp.Or(out.Body, r.Body)
		out.Job = cmp.Or(out.Job, r.Job)
		if r.FailItems > 0 {
			out.FailItems, out.ItemCode = r.FailItems, r.Code
		} else if out.Error == nil && r.Code != "" {
			out.Error = api.Errorf(r.Status, r.Code, "Injected by a fault rule.")
		}
		if out.Drop == "" {
			out.Drop = r.Drop
		}
	}
	return out
}

// hits counts the call and reports whether it is one of those to be hit.
func (r *State) hits(product, action string, kind api.Kind) bool {
	if (r.Product != "" && r.Product != product) || (r.Action != "*" && r.Action != action) || (r.Kind != "" && r.Kind != kind) {
		return false
	}
	r.Matched++
	if r.Matched <= r.After || (r.Times > 0 && r.Hit >= r.Times) {
		return false
	}
	if r.Probability > 0 && r.draw.Float64() >= r.Probability {
		return false
	}
	r.Hit++
	return true
}
