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
	pid := e.manager.pid()
	before, err := processorTime(pid)
	if err != nil {
		return nil, err
	}
	begin := time.Now()
	e.begin()
	if err = e.watch(ctx, idleWindow); err != nil {
		return nil, err
	}
	after, err := processorTime(pid)
	if err != nil {
		return nil, err
	}
	share := 100 * (after - before).Seconds() / time.Since(begin).Seconds()
	mib, err := residentMiB(pid)
	if err != nil {
		return nil, err
	}
	t := count(e.since(everything), everything)
	e.say("calls while idle: %s", t)
	operation := fmt.Sprintf("%d nodes, nothing changing for %s", idleCount, idleWindow)
	return []Figure{
		atMost(operation+": resident memory", mib, "MiB", idleMiB),
		atMost(operation+": processor time", share, "% of a core", idleCPU),
		withoutGoal(operation+": calls", float64(t.calls()), "calls"),
	}, nil
}
