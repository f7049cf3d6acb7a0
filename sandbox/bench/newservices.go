package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

const (
	newNodes, newServices = 100, 500
	// roomForNodes has heartbeats come as seldom as those of so many nodes: on a busy machine, nodes would count as dead whose heartbeats are
	// only late.
	roomForNodes = 1000
	// creationsPerMinute is how many CLBs the published limits let an account create in a minute, changesPerMinute how often they admit any
	// other change.
	creationsPerMinute, changesPerMinute = 60, 90
	// overForced bounds a time, compared with the one that the rate limits force.
	overForced = 1.1
	// shownMedian and shownWorst are within how many seconds a Service shows its address once its listener runs: at once, and a little later
	// if many start together, because the manager sends 100 requests a second to the API server at most.
	shownMedian, shownWorst = 1, 5
)

// createdAtOnce measures many Services that are made at once in an account whose quota of CLBs is raised.
func createdAtOnce(ctx context.Context, r run) (figures []Figure, err error) {
	e, err := newEnv(ctx, r, envOptions{nodes: roomForNodes, rateLimits: true, config: publishedConfig(cloud.Limits{LoadBalancers: 10_000})})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, e.stop(ctx)) }()
	if err = e.readyForStorm(ctx, newNodes); err != nil {
		return nil, err
	}
	services := make([]*corev1.Service, newServices)
	for i := range services {
		services[i] = newServiceOf(productCLB, fmt.Sprintf("new-%d", i), 1)
	}
	came, err := e.createTogether(ctx, services, minutes(newServices, creationsPerMinute))
	if err != nil {
		return nil, err
	}
	e.keepStorm(came, minutes(newServices, creationsPerMinute))
	delays := came.after(startedAt(e.since(writes(ofProduct(productCLB)))))
	const shown = "from the call that starts its listener until a Service shows its address"
	return append(came.figures(fmt.Sprintf("%d Services at once", newServices), minutes(newServices, creationsPerMinute)),
		atLeast(shown+": Services of which that is known", float64(len(delays)), "Services", newServices),
		atMost(fmt.Sprintf("%s, median of %d", shown, len(delays)), quantile(delays, 0.5).Seconds(), "s", shownMedian),
		atMost(fmt.Sprintf("%s, the worst of %d", shown, len(delays)), quantile(delays, 1).Seconds(), "s", shownWorst),
	), nil
}

// startedAt is when the last listener of each CLB was started.
func startedAt(calls []emulator.Call) map[string]time.Time {
	started := map[string]time.Time{}
	for _, call := range calls {
		if call.Action == "StartLoadBalancerListener" && call.Code == "" {
			started[call.Parameters["LoadBalancerId"]] = call.Time
		}
	}
	return started
}

// minutes is how long a rate limit makes n calls of one action take.
func minutes(n, perMinute int) time.Duration {
	return time.Duration(n) * time.Minute / time.Duration(perMinute)
}

// readyForStorm brings up nodes and a pod, and has a manager with the published arguments lead.
func (e *env) readyForStorm(ctx context.Context, n int) error {
	if err := e.readyForServices(ctx, n); err != nil {
		return err
	}
	if err := e.stopManager(ctx); err != nil {
		return err
	}
	if err := e.startManager(ctx); err != nil {
		return err
	}
	_, err := e.settled(ctx, everything)
	return err
}

// arrival is what the manager made of Services that came together.
type arrival struct {
	*addresses
	missing int
	took    time.Duration
	cpu     time.Duration
	tally   tally
}

// createTogether makes Services, and waits until all show an address, but no longer than twice what the rate limits force and a few
// minutes.
func (e *env) createTogether(ctx context.Context, services []*corev1.Service, forced time.Duration) (*arrival, error) {
	shown, stop, err := e.watchAddresses(ctx, services)
	if err != nil {
		return nil, err
	}
	defer stop()
	spent, err := processorTime(e.manager.pid())
	if err != nil {
		return nil, err
	}
	e.begin()
	began := time.Now()
	if err = each(ctx, services, func(ctx context.Context, service *corev1.Service) error {
		if _, failed := e.client.CoreV1().Services(namespace).Create(ctx, service, metav1.CreateOptions{}); failed != nil {
			return fmt.Errorf("create Service %s: %w", service.Name, failed)
		}
		return nil
	}); err != nil {
		return nil, err
	}
	e.say("%d Services exist", len(services))
	if err = e.withinTwice(ctx, forced, "all Services have addresses", func(context.Context) (string, error) {
		if have := shown.count(); have < len(services) {
			return fmt.Sprintf("%d of %d have", have, len(services)), nil
		}
		return "", nil
	}); err != nil {
		return nil, err
	}
	a := &arrival{addresses: shown, missing: len(services) - shown.count(), took: shown.last(began)}
	if a.tally, err = e.calmed(ctx); err != nil {
		return nil, err
	}
	now, err := processorTime(e.manager.pid())
	a.cpu = now - spent
	e.say("%d Services: %s", len(services), a.tally)
	return a, err
}

// keepStorm keeps the time for the chart, if all have come.
func (e *env) keepStorm(a *arrival, forced time.Duration) {
	if a.missing == 0 {
		e.measured.Storm(forced, a.took)
	}
}

// calmed waits until no CLB is written to any more, and counts the calls since begin. A new leader goes on to read for minutes.
func (e *env) calmed(ctx context.Context) (tally, error) {
	_, err := e.restedFor(ctx, fleetCalm, writes(ofProduct(productCLB)))
	return count(e.since(everything), ofProduct(productCLB)), err
}

// withinTwice waits for something, but no longer than twice a time and a few minutes. What is missing then is a figure, and no error.
func (e *env) withinTwice(
	ctx context.Context, forced time.Duration, what string, see func(context.Context) (missing string, err error),
) error {
	err := e.untilWithin(ctx, 2*forced+untilTimeout/3, time.Second, what, see)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		e.say("%v", err)
		return nil
	}
	return err
}

func (a *arrival) figures(operation string, forced time.Duration) []Figure {
	return []Figure{
		atMost(operation+": Services without an address", float64(a.missing), "Services", 0),
		atMost(operation+": the last address is shown", a.took.Seconds(), "s", overForced*forced.Seconds()),
		atMost(operation+": calls that the cloud refuses", float64(a.tally.refused), "calls", 0),
		withoutGoal(operation+": writes", float64(a.tally.writes), "writes"),
		withoutGoal(operation+": processor time of the manager", a.cpu.Seconds(), "s"),
	}
}
