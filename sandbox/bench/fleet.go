package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/limits"
)

// A fleet far beyond the published quotas: only that of CLBs is raised.
const (
	backendsPerCall = 40 // as in the cloud
	fleetNodes      = 5000
	fleetServices   = 2000
	fleetSubset     = "auto"
	// fleetBackends is how many nodes each Service has, and fleetWrites how many calls a node event may take: as many as a node has Services
	// where each has all that a CLB takes.
	fleetBackends = 100
	fleetWrites   = fleetServices * 200 / fleetNodes
	fleetMiB      = 300
	fleetCPU      = 2  // percent of a core
	fleetReady    = 20 // seconds
	fleetEvents   = 3
	// driftPeriod is after what time the manager reads each load balancer again, and fleetReads how many calls that may take for each.
	driftPeriod = 10 * time.Minute
	fleetReads  = 1.2
	// fleetWindow is as long, because a new leader spreads these reads over a whole period.
	fleetWindow = driftPeriod
)

// fleetOperation begins what is measured in a cluster with many Services, each of which has some of the nodes as backend servers.
var fleetOperation = fmt.Sprintf("%d nodes, %d Services", fleetNodes, fleetServices)

func fleetName(i int) string { return fmt.Sprintf("fleet-%d", i) }

func (e *env) fleetService(i int, subset string) *corev1.Service {
	service := e.newService(fleetName(i), 1)
	service.Annotations[annotationSubset] = subset
	return service
}

// prepareFleet makes cloud and cluster such as a manager leaves them, and stops the one that made the first Service.
func (e *env) prepareFleet(ctx context.Context) ([]Figure, error) {
	if err := e.nodesAndApp(ctx, fleetNodes, 1); err != nil {
		return nil, err
	}
	// While it is the only Service, it would have more backend servers than its share of all.
	first, err := e.recordService(ctx, e.fleetService(0, strconv.Itoa(fleetBackends)))
	if err != nil {
		return nil, err
	}
	if err = errors.Join(e.stopManager(), e.annotateService(ctx, fleetName(0), annotationSubset, fleetSubset)); err != nil {
		return nil, err
	}
	server, err := first.withoutBackends()
	if err != nil {
		return nil, err
	}
	services := make([]*corev1.Service, fleetServices-1)
	for i := range services {
		services[i] = e.fleetService(i+1, fleetSubset)
	}
	return nil, e.replay(ctx, services, func(i int) *template { return first.withShare(i+1, server) })
}

// withShare adds the backend servers that are the i-th Service's share of all.
func (t *template) withShare(i int, server map[string]any) *template {
	copied := *t
	copied.calls = slices.Clone(t.calls)
	at := slices.IndexFunc(copied.calls, func(p api.Params) bool { return p["Action"] == "CreateVServerGroup" }) + 1
	group := t.groups[copied.calls[at-1]["VServerGroupName"]]
	for done := 0; done < fleetBackends; done += backendsPerCall {
		var servers []map[string]any
		for k := done; k < min(done+backendsPerCall, fleetBackends); k++ {
			one := maps.Clone(server)
			one["ServerId"] = benchInstance((i*fleetBackends+k)%fleetNodes + 1)
			servers = append(servers, one)
		}
		text, err := json.Marshal(servers)
		if err != nil {
			panic(err) // they were decoded from JSON
		}
		copied.calls = slices.Insert(copied.calls, at, api.Params{
			"Action": "AddVServerGroupBackendServers", "Version": api.VersionSLB, "VServerGroupId": group, "BackendServers": string(text),
		})
		at++
	}
	return &copied
}

// withoutBackends takes the backend servers out of the calls, and returns one of them.
func (t *template) withoutBackends() (map[string]any, error) {
	var servers []map[string]any
	for _, params := range t.calls {
		if text := params["BackendServers"]; text != "" && text != "[]" && servers == nil {
			if err := json.Unmarshal([]byte(text), &servers); err != nil {
				return nil, fmt.Errorf("decode backend servers: %w", err)
			}
		}
	}
	if len(servers) == 0 {
		return nil, errors.New("the first Service has no backend servers")
	}
	t.calls = slices.DeleteFunc(t.calls, func(p api.Params) bool { return p["Action"] == "AddVServerGroupBackendServers" })
	for _, params := range t.calls {
		delete(params, "BackendServers")
	}
	return servers[0], nil
}

// newLeader measures what a restart reads and writes, and how soon the new leader serves a change.
func (e *env) newLeader(ctx context.Context) ([]Figure, error) {
	served, err := e.firstServed(ctx, fleetName(fleetServices/2))
	if err != nil {
		return nil, err
	}
	t, err := e.settled(ctx, ofProduct(productCLB))
	if err != nil {
		return nil, err
	}
	e.say("new leader: %s", t)
	used, err := e.manager.used()
	return []Figure{
		atMost(fleetOperation+": first change served after becoming leader", served.Seconds(), "s", fleetReady),
		atMost(fleetOperation+": writes of a new leader beyond this change", float64(t.writes-1), "writes", 0),
		atMost(fleetOperation+": calls of a new leader that the cloud refuses", float64(t.refused), "calls", 0),
		withoutGoal(fleetOperation+": reads of a new leader", float64(t.reads), "reads"),
		withoutGoal(fleetOperation+": highest memory of a new leader", used.highest, "MiB"),
	}, err
}

// steady measures a cluster in which nothing changes.
func (e *env) steadyFleet(ctx context.Context) ([]Figure, error) {
	window := max(e.steadyWindow, fleetWindow)
	still, err := e.atRest(ctx, window)
	if err != nil {
		return nil, err
	}
	calls := e.since(everything)
	compared := count(calls, ofProduct(productCLB)).reads
	gets, err := e.nodeReads(still.begin)
	if err != nil {
		return nil, err
	}
	lists, err := e.nodeLists(still.begin)
	if err != nil {
		return nil, err
	}
	operation := fmt.Sprintf("%s, nothing changing for %s", fleetOperation, window)
	return []Figure{
		atMost(operation+": resident memory", still.mib, "MiB", fleetMiB),
		atMost(operation+": processor time", still.cpu, "% of a core", fleetCPU),
		atMost(operation+": writes", float64(still.writes), "writes", 0),
		atMost(operation+": live GETs of Nodes at the API server", float64(gets), "GETs", 0),
		atMost(operation+": LISTs of Nodes at the API server", float64(lists), "LISTs", 0),
		atMost(operation+": reads of CLBs per Service and period", float64(compared)*float64(driftPeriod)/float64(window)/float64(fleetServices),
			"reads", fleetReads),
		e.refusedByLimits(operation, calls),
	}, nil
}

// nodeEvents counts the writes for nodes that join and leave one after the other.
func (e *env) nodeEvents(ctx context.Context) ([]Figure, error) {
	joined, left, refused := 0, 0, 0
	e.begin()
	began := e.mark
	for i := range fleetEvents {
		t, err := e.event(ctx, "a node joins", func(ctx context.Context) error {
			if err := e.addMachines(1, false); err != nil {
				return err
			}
			return e.untilNodes(ctx, fleetNodes+1, "schedulable", schedulable)
		})
		if err != nil {
			return nil, err
		}
		joined, refused = joined+t.writes, refused+t.refused
		t, err = e.event(ctx, "a node leaves", func(ctx context.Context) error { return e.removeMachine(ctx, 100*(i+1)) })
		if err != nil {
			return nil, err
		}
		left, refused = left+t.writes, refused+t.refused
	}
	join, leave := float64(joined)/fleetEvents, float64(left)/fleetEvents
	return []Figure{
		atMost(fmt.Sprintf("%s: a node joins, mean of %d", fleetOperation, fleetEvents), join, "writes", fleetWrites),
		atMost(fmt.Sprintf("%s: a node leaves, mean of %d", fleetOperation, fleetEvents), leave, "writes", fleetWrites),
		atMost(fleetOperation+": calls that the cloud refuses meanwhile", float64(refused), "calls", 0),
		e.refusedByLimits(fleetOperation+": nodes join and leave", e.cloud.Calls(began)),
	}, nil
}

// refusedByLimits counts the calls that the published rate limits would refuse. The cloud of the scenario does not, because the preparation
// exceeds them.
func (e *env) refusedByLimits(operation string, calls []emulator.Call) Figure {
	windows, refused := limits.New(limits.Published), 0
	for _, call := range calls {
		if windows.Admit(call.Product, call.Action, call.Kind, call.Time) != nil {
			refused++
		}
	}
	return atMost(operation+": calls that the published rate limits refuse", float64(refused), "calls", 0)
}

// removeMachine releases an instance and deletes its Node.
func (e *env) removeMachine(ctx context.Context, i int) error {
	e.cloud.ReleaseInstance(benchInstance(i))
	if err := e.client.CoreV1().Nodes().Delete(ctx, nodeName(i), metav1.DeleteOptions{}); err != nil {
		return fmt.Errorf("delete node %s: %w", nodeName(i), err)
	}
	return e.untilNodes(ctx, fleetNodes, "schedulable", schedulable)
}

// event counts the writes that an event of a node causes. One after the other, Services give a new node the place of a busier one, and
// between two of them may be seconds.
func (e *env) event(ctx context.Context, what string, operate func(context.Context) error) (tally, error) {
	return e.duringFor(ctx, what, writesCalm, writes(ofProduct(productCLB)), operate)
}
