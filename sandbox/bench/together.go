package bench

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
)

// servicesTogether measures many Services that are made at once in an account whose quota of CLBs is raised.
func (e *env) servicesTogether(ctx context.Context) ([]Figure, error) {
	if err := e.readyForStorm(ctx, newNodes); err != nil {
		return nil, err
	}
	forced := minutes(newServices, creationsPerMinute)
	delays, err := e.createTogether(ctx, newServices, forced)
	operation := fmt.Sprintf("%d Services at once", newServices)
	return []Figure{
		atMost(operation+": Services without an address", float64(newServices-len(delays)), "Services", 0),
		atMost(operation+": the last address is shown", quantile(delays, 1).Seconds(), "s", overForced*forced.Seconds()),
		atMost(operation+": calls that the cloud refuses", float64(count(e.since(everything), everything).refused), "calls", 0),
	}, err
}

// readyForStorm brings up nodes and a pod, and has a manager with the published arguments lead: the one that made them has a fast client.
func (e *env) readyForStorm(ctx context.Context, n int) error {
	if err := e.readyForServices(ctx, n); err != nil {
		return err
	}
	if err := errors.Join(e.stopManager(), e.startManager(ctx)); err != nil {
		return err
	}
	_, err := e.settled(ctx, everything)
	return err
}

// createTogether makes Services, waits until all show an address and nothing is written any more, and returns after what time each showed
// its own. It waits for twice as long as the rate limits force, and some minutes.
func (e *env) createTogether(ctx context.Context, n int, forced time.Duration) ([]time.Duration, error) {
	services := make([]*corev1.Service, n)
	for i := range services {
		services[i] = e.newService(fmt.Sprintf("new-%d", i), 1)
	}
	e.begin()
	created, after := time.Now(), map[string]time.Duration{}
	if err := each(ctx, services, func(ctx context.Context, service *corev1.Service) error {
		_, err := e.client.CoreV1().Services(namespace).Create(ctx, service, metav1.CreateOptions{})
		return err
	}); err != nil {
		return nil, fmt.Errorf("create Services: %w", err)
	}
	if err := e.withinTwice(ctx, forced, "all Services have addresses", func(ctx context.Context) (string, error) {
		list, err := e.client.CoreV1().Services(namespace).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			return "", fmt.Errorf("list the Services: %w", err)
		}
		for _, service := range list.Items {
			if _, seen := after[service.Name]; !seen && len(service.Status.LoadBalancer.Ingress) > 0 {
				after[service.Name] = time.Since(created)
			}
		}
		if len(after) < n {
			return fmt.Sprintf("%d of %d have", len(after), n), nil
		}
		return "", nil
	}); err != nil {
		return nil, err
	}
	return slices.Collect(maps.Values(after)), e.calmed(ctx)
}

// minutes is how long a rate limit makes n calls of one action take.
func minutes(n, perMinute int) time.Duration {
	return time.Duration(n) * time.Minute / time.Duration(perMinute)
}

// withinTwice waits for something, but no longer than twice a time and a few minutes. What is missing then is a figure, and no error.
func (e *env) withinTwice(
	ctx context.Context, forced time.Duration, what string, see func(context.Context) (missing string, err error),
) error {
	err := e.untilWithin(ctx, 2*forced+untilTimeout/3, 5*poll, what, see)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		e.say("%v", err)
		return nil
	}
	return err
}
