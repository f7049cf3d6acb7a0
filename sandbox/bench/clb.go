package bench

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	clbNodes = 3
	// replacements is how often an endpoint is replaced to measure how long that takes: the quota lets 80 changes of backend servers through
	// at once, and what is measured here is a limiter that nobody waits for.
	replacements = 20
	medianMillis = 300
	slowMillis   = 1000
)

// Services of the scenario: one has one port, the other one several.
const (
	smallService = "small"
	largeService = "large"
	podsService  = "pods"
	largePorts   = 4
)

// sizes are the Services whose life is measured.
var sizes = []struct {
	name  string
	ports int
}{{smallService, 1}, {largeService, largePorts}}

// life measures the life of single Services of the product of the scenario.
func (e *env) life(ctx context.Context) ([]Figure, error) {
	if err := e.readyForServices(ctx, clbNodes); err != nil {
		return nil, err
	}
	return inTurn((*env).creation, (*env).edits, (*env).irrelevantChanges, (*env).nodeAdded, (*env).podReplaced, (*env).deletion,
		(*env).sharedDeletions)(e, ctx)
}

// goals of the calls for the life of a Service: those of its product.
type goals struct {
	// create are the calls for the creation of a Service with one port and of one with several; deletion are those for the deletion, one of
	// which reads the listeners: one of somebody else keeps the load balancer.
	create, createWrites, deletion [2]float64
	// readsOfEdit are the reads that an edit takes besides one for each port, readsOfNode those for a group when a node joins, callsOfPod
	// all calls when a pod is replaced.
	readsOfEdit, readsOfNode, callsOfPod float64
	// pause is time enough for what follows the first call when a pod is replaced.
	pause time.Duration
}

var goalsOf = map[string]goals{
	productCLB: {create: [2]float64{5, 14}, createWrites: [2]float64{5, 14}, deletion: [2]float64{4, 4}, readsOfEdit: 3, readsOfNode: 0,
		callsOfPod: 3, pause: 500 * time.Millisecond},
	productNLB: nlbGoals,
}

// readyForServices brings up nodes, manager and pods, and waits until the cloud is calm.
func (e *env) readyForServices(ctx context.Context, n int) error {
	if err := e.nodesAndApp(ctx, n, clbNodes); err != nil {
		return err
	}
	_, err := e.settled(ctx, everything)
	return err
}

// nodesAndApp brings up nodes, manager and pods.
func (e *env) nodesAndApp(ctx context.Context, n int, pods int32) error {
	if err := e.addMachines(n, false); err != nil {
		return err
	}
	if err := e.startManager(ctx, fastClient...); err != nil {
		return err
	}
	if err := e.untilNodes(ctx, n, "schedulable", schedulable); err != nil {
		return err
	}
	return e.runApp(ctx, pods)
}

// ofSizes measures an operation on a Service of each size.
func (e *env) ofSizes(
	ctx context.Context, format string, operate func(ctx context.Context, name string, ports int) error, goals func(i, ports int) []most,
) (figures []Figure, err error) {
	for i, s := range sizes {
		more, err := e.measure(ctx, fmt.Sprintf(format, s.ports), ofProduct(e.product), func(ctx context.Context) error {
			return operate(ctx, s.name, s.ports)
		}, goals(i, s.ports)...)
		if err != nil {
			return nil, err
		}
		figures = append(figures, more...)
	}
	return figures, nil
}

func (e *env) creation(ctx context.Context) ([]Figure, error) {
	want := goalsOf[e.product]
	return e.ofSizes(ctx, fmt.Sprintf("create, ports: %%d, nodes: %d", clbNodes), func(ctx context.Context, name string, ports int) error {
		return e.createService(ctx, e.newService(name, ports))
	}, func(i, _ int) []most { return []most{{"calls", want.create[i]}, {"writes", want.createWrites[i]}} })
}

// edits are changes by users that need no write. Each reads what a pass for drift reads: the load balancer, its listeners, the list of its
// vServer groups and each of those.
func (e *env) edits(ctx context.Context) ([]Figure, error) {
	const operation = "edit of one Service that changes nothing on its load balancer, ports: %d"
	return e.ofSizes(ctx, operation, func(ctx context.Context, name string, _ int) error {
		return e.patchService(ctx, name, `{"spec":{"internalTrafficPolicy":"Local"}}`)
	}, func(_, ports int) []most {
		return []most{{"reads", goalsOf[e.product].readsOfEdit + float64(ports)}, {"writes", 0}}
	})
}

func (e *env) deletion(ctx context.Context) ([]Figure, error) {
	return e.ofSizes(ctx, "delete, ports: %d", func(ctx context.Context, name string, _ int) error { return e.deleteService(ctx, name) },
		func(i, _ int) []most { return []most{{"calls", goalsOf[e.product].deletion[i]}} })
}

// irrelevantChanges are those that no load balancer has to follow.
func (e *env) irrelevantChanges(ctx context.Context) ([]Figure, error) {
	var figures []Figure
	for _, change := range []struct {
		operation string
		make      func(context.Context) error
	}{
		{"no-op resync of one Service (its status changes)", func(ctx context.Context) error {
			patch := []byte(`{"status":{"conditions":[{"type":"example.com/Note","status":"True","reason":"Changed","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`)
			_, err := e.client.CoreV1().Services(namespace).Patch(ctx, smallService, types.StrategicMergePatchType, patch, metav1.PatchOptions{},
				"status")
			if err != nil {
				return fmt.Errorf("patch the status of a Service: %w", err)
			}
			return nil
		}},
		{"endpoint change, Cluster policy (two more pods)", func(ctx context.Context) error {
			return e.scaleApp(ctx, clbNodes+2)
		}},
		{"node label that does not matter", func(ctx context.Context) error {
			patch := []byte(`{"metadata":{"labels":{"example.com/note":"changed"}}}`)
			_, err := e.client.CoreV1().Nodes().Patch(ctx, nodeName(1), types.MergePatchType, patch, metav1.PatchOptions{})
			if err != nil {
				return fmt.Errorf("label a node: %w", err)
			}
			return nil
		}},
	} {
		more, err := e.measure(ctx, change.operation, ofProduct(e.product), change.make, most{"calls", 0})
		if err != nil {
			return nil, err
		}
		figures = append(figures, more...)
	}
	return figures, nil
}

func (e *env) nodeAdded(ctx context.Context) ([]Figure, error) {
	const ports = 1 + largePorts
	operation := fmt.Sprintf("node added, for each Service and port (of %d)", ports)
	t, err := e.during(ctx, operation, ofProduct(e.product), func(ctx context.Context) error {
		if err := e.addMachines(1, false); err != nil {
			return err
		}
		return e.untilNodes(ctx, clbNodes+1, "schedulable", schedulable)
	})
	return t.figures(operation, ports, most{"writes", 1}, most{"reads", goalsOf[e.product].readsOfNode}), err
}

// podReplaced replaces endpoints of a Service whose backend servers are addresses of pods. Light pods have no network interfaces of the
// cloud, so that the addresses of machines stand for theirs; to the load balancer there is no difference.
func (e *env) podReplaced(ctx context.Context) ([]Figure, error) {
	service := e.newService(podsService, 1)
	service.Spec.Selector = nil
	service.Annotations[annotationBackendType] = "eni"
	var addresses []string
	for _, instance := range e.cloud.Instances() {
		addresses = append(addresses, instance.PrivateIP)
	}
	servers, spare := addresses[:clbNodes], addresses[clbNodes]
	slicesAPI := e.client.DiscoveryV1().EndpointSlices(namespace)
	if _, err := slicesAPI.Create(ctx, endpointSlice(service, servers), metav1.CreateOptions{}); err != nil {
		return nil, fmt.Errorf("create the endpoints: %w", err)
	}
	relevant := orAction(ofProduct(e.product), "DescribeNetworkInterfaces")
	_, err := e.during(ctx, "create, pods as backends", relevant, func(ctx context.Context) error {
		return e.createService(ctx, service)
	})
	if err != nil {
		return nil, err
	}
	var totals tally // of the last replacement; every one takes the same calls
	var delays []time.Duration
	for range replacements {
		servers, spare = append(slices.Clone(servers[1:]), spare), servers[0]
		e.begin()
		changed := time.Now()
		if _, err = slicesAPI.Update(ctx, endpointSlice(service, servers), metav1.UpdateOptions{}); err != nil {
			return nil, fmt.Errorf("replace an endpoint: %w", err)
		}
		if err = e.untilCalled(ctx, writes(ofProduct(e.product))); err != nil {
			return nil, err
		}
		delays = append(delays, e.since(writes(ofProduct(e.product)))[0].Time.Sub(changed))
		if totals, err = e.restedFor(ctx, goalsOf[e.product].pause, relevant); err != nil {
			return nil, err
		}
	}
	e.say("one pod replaced: %s", totals)
	return podFigures(totals, delays, goalsOf[e.product].callsOfPod), nil
}

func podFigures(t tally, delays []time.Duration, calls float64) []Figure {
	const operation = "one pod replaced, pods as backends, for each port"
	const delay = "from an endpoint's being ready to the call that registers it"
	millis := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	return append(t.figures(operation, 1, most{"calls", calls}, most{"writes", 2}),
		atMost(fmt.Sprintf("%s, median of %d", delay, len(delays)), millis(quantile(delays, 0.5)), "ms", medianMillis),
		atMost(fmt.Sprintf("%s, 99 %% of %d", delay, len(delays)), millis(quantile(delays, 0.99)), "ms", slowMillis))
}
