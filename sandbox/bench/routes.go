package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

// What one call of the emulated cloud takes, and how long it takes to come into effect.
const (
	routeSettle  = time.Second
	routeFactor  = 1.2 // how much longer than the batches themselves the routes may take
	fewNodes     = 50
	fewMaxCalls  = 3
	manyNodes    = 1000
	manyMaxCalls = 35
)

// routes measures so many nodes that the manager sees all at once, and then its restart. Only the route controller runs, so that the pace
// at which nodes are initialized does not blur the batches.
func routes(nodes, maxCalls int) func(context.Context, run) ([]Figure, error) {
	return func(ctx context.Context, r run) (figures []Figure, err error) {
		e, err := newEnv(ctx, r, envOptions{settle: routeSettle, nodes: nodes})
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, e.stop()) }()
		onlyRoutes := append([]string{"--controllers=node-route-controller"}, fastClient...)
		if err = e.startManager(ctx, onlyRoutes...); err != nil {
			return nil, err
		}
		if figures, err = e.newRoutes(ctx, nodes, maxCalls); err != nil {
			return nil, err
		}
		restarted, err := e.restartWithRoutes(ctx, nodes, onlyRoutes)
		return append(figures, restarted...), err
	}
}

// newRoutes lets nodes join and then gives them their provider IDs while the manager is paused, so that it sees all of them at once:
// writing thousands of them takes seconds, in which it would begin with small batches.
func (e *env) newRoutes(ctx context.Context, n, maxCalls int) ([]Figure, error) {
	if err := e.addMachines(n, false); err != nil {
		return nil, err
	}
	if err := e.untilNodes(ctx, n, "joined", joined); err != nil {
		return nil, err
	}
	if _, err := e.settled(ctx, ofProduct("vpc")); err != nil {
		return nil, err
	}
	var took time.Duration
	operation := fmt.Sprintf("routes for %d new nodes, one table", n)
	t, err := e.during(ctx, operation, ofProduct("vpc"), func(ctx context.Context) error {
		if err := e.manager.whilePaused(func() error { return e.setProviderIDs(ctx) }); err != nil {
			return err
		}
		begin := time.Now()
		defer func() { took = time.Since(begin) }()
		return e.untilNodes(ctx, n, "routed", routed)
	})
	if err != nil {
		return nil, err
	}
	batches := math.Ceil(float64(n) / float64(cloud.Observed().RouteEntriesPerCall))
	return []Figure{
		atMost(operation, float64(t.calls()), "calls", float64(maxCalls)),
		atMost(fmt.Sprintf("%s: until every node has the condition (the cloud takes %s for each of %.0f batches)", operation, routeSettle,
			batches),
			took.Seconds(), "s", routeFactor*batches*routeSettle.Seconds()),
	}, nil
}

// restartWithRoutes counts what a new leader reads of routes that are all as they should be.
func (e *env) restartWithRoutes(ctx context.Context, nodes int, args []string) ([]Figure, error) {
	if err := e.stopManager(); err != nil {
		return nil, err
	}
	operation := fmt.Sprintf("restart with %d routed nodes", nodes)
	t, err := e.during(ctx, operation, ofProduct("vpc"), func(ctx context.Context) error {
		if err := e.startManager(ctx, args...); err != nil {
			return err
		}
		return e.untilCalled(ctx, ofProduct("vpc"))
	})
	if err != nil {
		return nil, err
	}
	pages := math.Ceil(float64(nodes) / float64(cloud.Observed().RouteEntryPage))
	return []Figure{
		atMost(operation, float64(t.reads), "reads", pages+1),
		atMost(operation, float64(t.writes), "writes", 0),
	}, nil
}

// untilCalled waits for the first chosen call since begin.
func (e *env) untilCalled(ctx context.Context, f filter) error {
	return e.until(ctx, "a call arrives", func(context.Context) (string, error) {
		if len(e.since(f)) == 0 {
			return "none has", nil
		}
		return "", nil
	})
}
