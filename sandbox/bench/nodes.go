package bench

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// The nodes as they come: all controllers, with the published flags.
const (
	initNodes    = 100
	initMaxCalls = 3
	joinNodes    = 1000
	joinSeconds  = 90

	// steadyPeriod is what the calls of the steady state are reported for. It is watched at least that long: the addresses of nodes and the
	// route tables are read again after minutes only.
	steadyPeriod   = 5 * time.Minute
	steadyMaxCalls = 10
	steadyMaxReads = 0
)

const switchCheckOff = "ModifyNetworkInterfaceAttribute"

// initialize counts the calls for nodes that a new leader finds, with their source/destination check on. One call for each interface to
// switch it off cannot be avoided and takes longer than anyone wants to watch under the quota, so these are left out.
func (e *env) initialize(ctx context.Context) ([]Figure, error) {
	operation := fmt.Sprintf("initialize %d nodes: calls of ECS beyond one %s for each", initNodes, switchCheckOff)
	if err := e.addMachines(initNodes, true); err != nil {
		return nil, err
	}
	if err := e.untilNodes(ctx, initNodes, "joined", joined); err != nil {
		return nil, err
	}
	return e.measure(ctx, operation, exceptAction(ofProduct("ecs"), switchCheckOff), func(ctx context.Context) error {
		if err := e.startManager(ctx); err != nil {
			return err
		}
		return e.untilNodes(ctx, initNodes, "initialized and routed", schedulable)
	}, most{"calls", initMaxCalls})
}

// join lets a thousand nodes join a cluster whose first nodes have left again. The manager is a new one: the one before would go on for a
// minute to switch off the source/destination checks of nodes that are gone.
func (e *env) join(ctx context.Context) ([]Figure, error) {
	if err := errors.Join(e.stopManager(), e.removeMachines(ctx)); err != nil {
		return nil, err
	}
	if err := e.startManager(ctx); err != nil {
		return nil, err
	}
	if _, err := e.settled(ctx, everything); err != nil {
		return nil, err
	}
	operation := fmt.Sprintf("%d nodes join at once: initialized, routed and schedulable", joinNodes)
	begin := time.Now()
	if err := e.addMachines(joinNodes, false); err != nil {
		return nil, err
	}
	for _, state := range []struct {
		name string
		is   nodeState
	}{{"joined", joined}, {"initialized", initialized}, {"routed", routed}, {"schedulable", schedulable}} {
		if err := e.untilNodes(ctx, joinNodes, state.name, state.is); err != nil {
			return nil, err
		}
		e.say("%d nodes are %s after %.1f s", joinNodes, state.name, time.Since(begin).Seconds())
	}
	return []Figure{atMost(operation, time.Since(begin).Seconds(), "s", joinSeconds)}, nil
}

// steady counts what arrives at the cloud while nothing changes, and how often the API server is asked for a single Node.
func (e *env) steady(ctx context.Context) ([]Figure, error) {
	window := max(e.steadyWindow, steadyPeriod)
	operation := fmt.Sprintf("steady state, %d nodes, for %s (watched for %s after they have joined)", joinNodes, steadyPeriod, window)
	if _, err := e.settled(ctx, everything); err != nil {
		return nil, err
	}
	still, err := e.atRest(ctx, window)
	if err != nil {
		return nil, err
	}
	reads, err := e.nodeReads(still.begin)
	if err != nil {
		return nil, err
	}
	share := steadyPeriod.Seconds() / window.Seconds()
	return []Figure{
		atMost(operation+": calls of the cloud", float64(still.calls())*share, "calls", steadyMaxCalls),
		atMost(operation+": live GETs of Nodes at the API server", float64(reads)*share, "GETs", steadyMaxReads),
	}, nil
}
