package bench

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	idleCount  = 5000
	idleWindow = time.Minute
	idleMiB    = 300
	idleCPU    = 5 // percent of one processor
)

// idleNodes measures what a large cluster costs in which nothing changes.
func idleNodes(ctx context.Context, r run) (figures []Figure, err error) {
	e, err := newEnv(ctx, r, envOptions{nodes: idleCount})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, e.stop(ctx)) }()
	if err := e.addMachines(idleCount, false); err != nil {
		return nil, err
	}
	if err := e.untilNodes(ctx, idleCount, "joined", joined); err != nil {
		return nil, err
	}
	if err := e.startManager(ctx, fastClient...); err != nil {
		return nil, err
	}
	if err := e.untilNodes(ctx, idleCount, "schedulable", schedulable); err != nil {
		return nil, err
	}
	// A new leader, as the one that has just brought thousands of nodes up is no picture of a cluster at rest.
	if err := e.stopManager(ctx); err != nil {
		return nil, err
	}
	if err := e.startManager(ctx); err != nil {
		return nil, err
	}
	if _, err := e.settled(ctx, everything); err != nil {
		return nil, err
	}
	return e.idle(ctx)
}

func (e *env) idle(ctx context.Context) ([]Figure, error) {
	still, err := e.atRest(ctx, idleWindow)
	if err != nil {
		return nil, err
	}
	operation := fmt.Sprintf("%d nodes, nothing changing for %s", idleCount, idleWindow)
	return append(still.figures(operation, idleMiB, idleCPU), withoutGoal(operation+": calls", float64(still.calls()), "calls")), nil
}

// standstill is what the manager costs while nothing changes.
type standstill struct {
	tally
	// cpu is in percent of a core.
	mib, cpu float64
	begin    time.Time
}

// atRest measures a time in which nothing changes.
func (e *env) atRest(ctx context.Context, window time.Duration) (standstill, error) {
	pid := e.manager.pid()
	before, err := processorTime(pid)
	if err != nil {
		return standstill{}, err
	}
	r := standstill{begin: time.Now()}
	e.begin()
	if err = e.watch(ctx, window); err != nil {
		return standstill{}, err
	}
	after, err := processorTime(pid)
	if err != nil {
		return standstill{}, err
	}
	r.cpu = 100 * (after - before).Seconds() / time.Since(r.begin).Seconds()
	if r.mib, err = residentMiB(pid); err != nil {
		return standstill{}, err
	}
	r.tally = count(e.since(everything), everything)
	e.say("calls while nothing changes: %s", r.tally)
	return r, nil
}

// figures are memory and processor time, with their goals.
func (r standstill) figures(operation string, mib, cpu float64) []Figure {
	return []Figure{atMost(operation+": resident memory", r.mib, "MiB", mib), atMost(operation+": processor time", r.cpu, "% of a core", cpu)}
}
