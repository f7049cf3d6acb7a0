package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// tenantNamespace is that of the tenant who does harm. The others are in the namespace of all other scenarios.
const tenantNamespace = "hostile"

const (
	// tenantMiB is what the manager may take whatever one tenant writes.
	tenantMiB = 200
	// textSeconds is within which time a neighbor has its address while a tenant writes long texts and many addresses.
	textSeconds = 1
	// queueSeconds and removalSeconds are within which time a neighbor has its address, and loses a dead backend server, while the calls of a
	// tenant fill the queue for the rate limit.
	queueSeconds   = 30
	removalSeconds = 5
)

// betweenNeighbors leaves the rate limit of creations, 90 a minute, to what is measured.
const betweenNeighbors = 10 * time.Second

// tenants measures what a tenant who may write Services and EndpointSlices costs the others.
func tenants(ctx context.Context, r run) (figures []Figure, err error) {
	e, err := newEnv(ctx, r, envOptions{nodes: clbNodes})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, e.stop(ctx)) }()
	if err = e.readyForServices(ctx, clbNodes); err != nil {
		return nil, err
	}
	_, err = e.client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: tenantNamespace}}, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("create the namespace of the tenant: %w", err)
	}
	return inTurn(ctx, e.undisturbed, e.longTexts, e.manyAddresses, e.fullQueue, e.hostileServices, e.tenantsEvents)
}

// undisturbed is what the others are compared with.
func (e *env) undisturbed(ctx context.Context) ([]Figure, error) {
	took, err := e.neighbor(ctx, "neighbor-alone")
	if err != nil {
		return nil, err
	}
	mib, err := highestMiB(e.manager.pid())
	return []Figure{
		withoutGoal("first address of a Service, alone", took.Seconds(), "s"), withoutGoal("manager's highest resident memory, before the tenant comes", mib, "MiB"),
	}, err
}

// neighbor creates a Service of another tenant and returns the time until it has its address.
func (e *env) neighbor(ctx context.Context, name string) (time.Duration, error) {
	begin := time.Now()
	err := e.createService(ctx, newService(name, 1))
	took := time.Since(begin)
	e.say("%s has its address after %s", name, took.Round(time.Millisecond))
	return took, err
}

// longTexts has the tenant write annotations of 250 kB.
func (e *env) longTexts(ctx context.Context) ([]Figure, error) {
	const services, values = 12, 11
	return e.beside(ctx, fmt.Sprintf("%d Services of one tenant with %d values of 250 kB each, one after the other", services, values), "neighbor-of-texts",
		func(ctx context.Context) error { return e.writeTexts(ctx, services, values) })
}

// manyAddresses has the tenant write a Service with more ports, and more addresses, than any load balancer has.
func (e *env) manyAddresses(ctx context.Context) ([]Figure, error) {
	const ports, addresses = 400, 10_000
	return e.beside(ctx, fmt.Sprintf("a Service of one tenant with %d ports and %d invented addresses", ports, addresses), "neighbor-of-addresses",
		func(ctx context.Context) error { return e.writeAddresses(ctx, "addresses", ports, addresses) })
}

// beside measures neighbors while a tenant does harm, one after the other until it ends.
func (e *env) beside(ctx context.Context, harm, neighbor string, do func(context.Context) error) ([]Figure, error) {
	done := make(chan error, 1)
	go func() { done <- do(ctx) }()
	var slowest time.Duration
	var failure error
	for at, ended := 0, false; !ended; at++ {
		took, err := e.neighbor(ctx, fmt.Sprintf("%s-%d", neighbor, at))
		if err != nil {
			return nil, errors.Join(err, <-done)
		}
		slowest = max(slowest, took)
		select {
		case failure = <-done:
			ended = true
		case <-time.After(betweenNeighbors):
		}
	}
	if failure != nil {
		return nil, fmt.Errorf("%s: %w", harm, failure)
	}
	if _, err := e.settled(ctx, everything); err != nil {
		return nil, err
	}
	mib, err := highestMiB(e.manager.pid())
	return []Figure{
		atMost("first address of a neighbor beside "+harm+", the slowest", slowest.Seconds(), "s", textSeconds),
		atMost("manager's highest resident memory after "+harm, mib, "MiB", tenantMiB),
	}, err
}

// fullQueue has the tenant fill the queue for the rate limit. The limits are those that the cloud publishes.
func (e *env) fullQueue(ctx context.Context) ([]Figure, error) {
	const services, ports = 40, 60
	move, err := e.podsOfNeighbor(ctx)
	if err != nil {
		return nil, err
	}
	for i := range services {
		service := newService(fmt.Sprintf("queue-%d", i), ports)
		if err = e.createTenants(ctx, service); err != nil {
			return nil, err
		}
	}
	if err = e.watch(ctx, 10*time.Second); err != nil { // the first calls of all of them wait by now
		return nil, err
	}
	took, err := e.neighbor(ctx, "neighbor-of-queue")
	if err != nil {
		return nil, err
	}
	removed, err := move(ctx)
	if err != nil {
		return nil, err
	}
	harm := fmt.Sprintf("%d Services of one tenant with %d ports each", services, ports)
	return []Figure{
		atMost("first address of a neighbor behind "+harm, took.Seconds(), "s", queueSeconds),
		atMost("a neighbor's dead backend server leaves behind "+harm, removed.Seconds(), "s", removalSeconds),
	}, e.dropTenants(ctx)
}

// hostileServices has the tenant write whatever comes to mind, and a neighbor come every few hundred objects.
func (e *env) hostileServices(ctx context.Context) ([]Figure, error) {
	const services, slices, updates, neighbors = 1000, 500, 500, 5
	var worst time.Duration
	for at := range neighbors {
		if err := e.writeHostile(ctx, at*services/neighbors, services/neighbors, slices/neighbors, updates/neighbors); err != nil {
			return nil, err
		}
		took, err := e.neighbor(ctx, fmt.Sprintf("neighbor-of-hostile-%d", at))
		if err != nil {
			return nil, err
		}
		worst = max(worst, took)
	}
	mib, err := highestMiB(e.manager.pid())
	harm := fmt.Sprintf("%d hostile Services, %d slices and %d updates", services, slices, updates)
	return []Figure{
		atMost(fmt.Sprintf("first address of a neighbor among %s, the slowest of %d", harm, neighbors), worst.Seconds(), "s", queueSeconds),
		atMost("manager's highest resident memory after "+harm, mib, "MiB", tenantMiB),
	}, err
}

// tenantsEvents measures the events that all of this has caused.
func (e *env) tenantsEvents(ctx context.Context) ([]Figure, error) {
	all, err := e.client.CoreV1().Events(tenantNamespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list the events: %w", err)
	}
	longest, total := 0, 0
	for i := range all.Items {
		longest, total = max(longest, len(all.Items[i].Message)), total+len(all.Items[i].Message)
	}
	const maxMessage = 1024
	return []Figure{
		withoutGoal("events in the tenant's namespace", float64(len(all.Items)), "events"),
		withoutGoal("text of all of them", float64(total)/(1<<10), "kiB"),
		atMost("longest text of one of them", float64(longest), "bytes", maxMessage),
	}, nil
}
