package bench

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
)

const (
	windowNodes, windowServices = 30, 50
	// quietMinutes is how long a manager is watched that has nothing to do.
	quietMinutes = 5 * time.Minute
)

// publishedWindows measures what a small cluster waits for under the published rate limits, and what it costs.
func (e *env) publishedWindows(ctx context.Context) ([]Figure, error) {
	if err := e.readyForStorm(ctx, windowNodes); err != nil {
		return nil, err
	}
	started, err := e.manager.used()
	if err != nil {
		return nil, err
	}
	figures := []Figure{
		atMost(fmt.Sprintf("start on %d nodes with nothing to do: processor time", windowNodes), started.cpu, "s", 0.3),
	}
	if err = e.watch(ctx, time.Minute); err != nil { // another window begins
		return nil, err
	}
	more, err := inTurn((*env).windowOfServices, (*env).windowOfANode, (*env).idleMinutes)(e, ctx)
	if err != nil {
		return nil, err
	}
	used, err := e.manager.used()
	return append(append(figures, more...),
		atMost(fmt.Sprintf("%d CLBs on %d nodes: highest memory", windowServices, windowNodes), used.highest, "MiB", 62)), err
}

// windowOfServices creates Services at once.
func (e *env) windowOfServices(ctx context.Context) ([]Figure, error) {
	delays, err := e.createTogether(ctx, windowServices, time.Minute)
	shown := fmt.Sprintf("%d Services at the start of a window: address shown, ", windowServices)
	return []Figure{
		atMost(shown+"median", quantile(delays, 0.5).Seconds(), "s", 10.1), withoutGoal(shown+"last", quantile(delays, 1).Seconds(), "s"),
	}, err
}

// windowOfANode lets a node join, and leave again.
func (e *env) windowOfANode(ctx context.Context) ([]Figure, error) {
	if err := e.watch(ctx, time.Minute); err != nil {
		return nil, err
	}
	e.begin()
	if err := e.addMachines(1, false); err != nil {
		return nil, err
	}
	if err := e.untilNodes(ctx, windowNodes+1, "joined", joined); err != nil {
		return nil, err
	}
	added, err := e.untilLast(ctx, "AddVServerGroupBackendServers")
	if err != nil {
		return nil, err
	}
	if err = e.watch(ctx, time.Minute); err != nil {
		return nil, err
	}
	e.begin()
	e.cloud.ReleaseInstance(benchInstance(e.added))
	if err = e.client.CoreV1().Nodes().Delete(ctx, nodeName(e.added), metav1.DeleteOptions{}); err != nil {
		return nil, fmt.Errorf("delete the node: %w", err)
	}
	removed, err := e.untilLast(ctx, "RemoveVServerGroupBackendServers")
	return []Figure{
		atMost(fmt.Sprintf("a node joins, %d Services: last backend added", windowServices), added.Seconds(), "s", 10.4),
		atMost(fmt.Sprintf("a node leaves, %d Services: last backend removed", windowServices), removed.Seconds(), "s", 7.9),
	}, err
}

// untilLast waits until each Service has called an action, and returns how long from now the last call was.
func (e *env) untilLast(ctx context.Context, action string) (time.Duration, error) {
	began, last := time.Now(), time.Time{}
	of := func(call emulator.Call) bool { return call.Action == action && call.Code == "" }
	err := e.until(ctx, action+" for each Service", func(context.Context) (string, error) {
		calls := e.since(of)
		if len(calls) < windowServices {
			return fmt.Sprintf("%d of %d", len(calls), windowServices), nil
		}
		last = calls[len(calls)-1].Time
		return "", nil
	})
	return last.Sub(began), err
}

// idleMinutes watches a manager that has nothing to do.
func (e *env) idleMinutes(ctx context.Context) ([]Figure, error) {
	if err := e.calmed(ctx); err != nil {
		return nil, err
	}
	still, err := e.atRest(ctx, quietMinutes)
	operation := fmt.Sprintf("%s without a change, %d CLBs: processor time", quietMinutes, windowServices)
	return []Figure{atMost(operation, still.cpu/100*quietMinutes.Seconds(), "s", 0.15)}, err
}
