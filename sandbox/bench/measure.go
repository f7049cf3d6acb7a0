package bench

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/child"
)

const (
	// untilTimeout leaves thousands of nodes on a busy machine their time.
	untilTimeout = 15 * time.Minute
	poll         = 50 * time.Millisecond
	// calm is how long no call must arrive before an operation counts as done. Repetitions come sooner than that.
	calm = 3 * time.Second
)

// until polls until see returns an empty string; what it returns instead is what is still missing. It ends early when the manager has
// ended, as then nothing more will happen.
func (e *env) until(ctx context.Context, what string, see func(context.Context) (missing string, err error)) error {
	// With thousands of nodes a poll is expensive, and the times to measure are longer.
	return e.untilEvery(ctx, poll+time.Duration(e.added)*time.Millisecond/4, what, see)
}

func (e *env) untilEvery(
	ctx context.Context, interval time.Duration, what string, see func(context.Context) (missing string, err error),
) error {
	return e.untilWithin(ctx, untilTimeout, interval, what, see)
}

func (e *env) untilWithin(
	ctx context.Context, timeout, interval time.Duration, what string, see func(context.Context) (missing string, err error),
) error {
	missing := ""
	err := wait.PollUntilContextTimeout(ctx, interval, timeout, true, func(ctx context.Context) (bool, error) {
		if e.manager != nil {
			if err := e.manager.Failed(); err != nil {
				return false, err
			}
		}
		var err error
		missing, err = see(ctx)
		return err == nil && missing == "", err
	})
	switch {
	case err == nil:
		return nil
	case missing != "" && e.manager != nil:
		return fmt.Errorf("wait until %s: %s: %w; the end of the manager's log:\n%s", what, missing, err, child.Tail(e.manager.log))
	default:
		return fmt.Errorf("wait until %s: %s: %w", what, missing, err)
	}
}

// begin forgets the calls so far: what is measured starts here.
func (e *env) begin() {
	if calls := e.cloud.Calls(e.mark); len(calls) > 0 {
		e.mark = calls[len(calls)-1].Seq
	}
}

// since lists the calls since begin that a filter chooses.
func (e *env) since(f filter) []emulator.Call {
	var chosen []emulator.Call
	for _, call := range e.cloud.Calls(e.mark) {
		if f(call) {
			chosen = append(chosen, call)
		}
	}
	return chosen
}

// settled waits until the cloud is calm, and counts the chosen calls since begin.
func (e *env) settled(ctx context.Context, f filter) (tally, error) {
	return e.restedFor(ctx, calm, f)
}

// restedFor waits until no chosen call has arrived for a while, and counts those since begin.
func (e *env) restedFor(ctx context.Context, enough time.Duration, f filter) (tally, error) {
	began := time.Now()
	err := e.until(ctx, "the calls have come to rest", func(context.Context) (string, error) {
		last := began
		for _, call := range e.since(f) {
			if call.Time.After(last) {
				last = call.Time
			}
		}
		if rest := time.Since(last); rest < enough {
			return fmt.Sprintf("the last call was %s ago", rest.Round(time.Millisecond)), nil
		}
		return "", nil
	})
	return count(e.since(f), f), err
}

// during counts the chosen calls that an operation causes, its aftermath included.
func (e *env) during(ctx context.Context, what string, f filter, operate func(context.Context) error) (tally, error) {
	return e.duringFor(ctx, what, calm, f, operate)
}

// duringFor is during for an operation whose calls may be further apart: it is over once no chosen call has arrived for a while.
func (e *env) duringFor(
	ctx context.Context, what string, enough time.Duration, f filter, operate func(context.Context) error,
) (tally, error) {
	e.begin()
	if err := operate(ctx); err != nil {
		return tally{}, fmt.Errorf("%s: %w", what, err)
	}
	t, err := e.restedFor(ctx, enough, f)
	if err != nil {
		return tally{}, fmt.Errorf("%s: %w", what, err)
	}
	e.say("%s: %s", what, t)
	return t, nil
}

// measure is during with figures for the calls.
func (e *env) measure(ctx context.Context, what string, f filter, operate func(context.Context) error, goals ...most) ([]Figure, error) {
	t, err := e.during(ctx, what, f, operate)
	if err != nil {
		return nil, err
	}
	return t.figures(what, 1, goals...), nil
}

// most is a goal for the calls, reads, writes or refused ones of an operation: at most so many.
type most struct {
	unit string
	goal float64
}

// figures compares the calls of an operation with its goals, for each of some things that it is about.
func (t tally) figures(operation string, things int, goals ...most) []Figure {
	counts := map[string]int{"calls": t.calls(), "reads": t.reads, "writes": t.writes, "refused": t.refused}
	figures := make([]Figure, len(goals))
	for i, most := range goals {
		figures[i] = atMost(operation, float64(counts[most.unit])/float64(things), most.unit, most.goal)
	}
	return figures
}
