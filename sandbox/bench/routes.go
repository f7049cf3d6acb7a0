package bench

import (
	"context"
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
func routes(nodes, maxCalls int) step {
	return func(e *env, ctx context.Context) ([]Figure, error) {
		onlyRoutes := append([]string{"--controllers=node-route-controller"}, fastClient...)
		if err := e.startManager(ctx, onlyRoutes...); err != nil {
			return nil, err
		}
		figures, err := e.newRoutes(ctx, nodes, maxCalls)
		if err != nil {
			return nil, err
		}
		if err = e.stopManager(); err != nil {
			return nil, err
		}
		// What a new leader reads of routes that are all as they should be.
		pages := math.Ceil(float64(nodes) / float64(cloud.Observed().RouteEntryPage))
		restarted, err := e.measure(ctx, fmt.Sprintf("restart with %d routed nodes", nodes), ofProduct("vpc"), func(ctx context.Context) error {
			return e.startCalling(ctx, "vpc", onlyRoutes...)
		}, most{"reads", pages + 1}, most{"writes", 0})
		return append(figures, restarted...), err
	}
}

// newRoutes lets nodes join and then gives them their provider IDs while the manager is paused, so that it sees all of them at once:
// writing thousands of them takes seconds, in which it would begin with small batches.
func (e *env) newRoutes(ctx context.Context, n, maxCalls int) ([]Figure, error) {
	if err := e.addJoined(ctx, n); err != nil {
		return nil, err
	}
	if _, err := e.settled(ctx, ofProduct("vpc")); err != nil {
		return nil, err
	}
	var took time.Duration
	operation := fmt.Sprintf("routes for %d new nodes, one table", n)
	figures, err := e.measure(ctx, operation, ofProduct("vpc"), func(ctx context.Context) error {
		if err := e.manager.whilePaused(func() error { return e.setProviderIDs(ctx) }); err != nil {
			return err
		}
		begin := time.Now()
		defer func() { took = time.Since(begin) }()
		return e.untilNodes(ctx, n, "routed", routed)
	}, most{"calls", float64(maxCalls)})
	batches := math.Ceil(float64(n) / float64(cloud.Observed().RouteEntriesPerCall))
	return append(figures, atMost(fmt.Sprintf("%s: until every node has the condition (the cloud takes %s for each of %.0f batches)",
		operation, routeSettle, batches), took.Seconds(), "s", routeFactor*batches*routeSettle.Seconds())), err
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
