package bench

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
)

const (
	// sharedServices are those of a group of which all but one are deleted, first one of them, and then the others at once.
	sharedServices = 50
	// ownDeleted are Services with a load balancer each that are deleted at once.
	ownDeleted = 20
)

// deletionGoals are the calls for the deletion of Services from the load balancer of a group, of one and of all others but one.
type deletionGoals struct{ one, rest float64 }

var deletionGoalsOf = map[string]deletionGoals{productCLB: {4, 4 * (sharedServices - 2)}, productNLB: {6, 300}}

// sharedDeletions deletes Services of a group.
func (e *env) sharedDeletions(ctx context.Context) ([]Figure, error) {
	want := deletionGoalsOf[e.product]
	names, err := e.createMany(ctx, "shared", sharedServices, func(service *corev1.Service, i int) {
		service.Annotations[annotationGroup] = "shared"
		service.Spec.Ports[0].Port = int32(firstPort + i) //nolint:gosec // few
	})
	if err != nil {
		return nil, err
	}
	one := "delete one of several Services on a load balancer"
	rest := fmt.Sprintf("delete %d of several Services on a load balancer at once", sharedServices-2)
	first, err := e.during(ctx, one, ofProduct(e.product), func(ctx context.Context) error { return e.deleteService(ctx, names[0]) })
	if err != nil {
		return nil, err
	}
	others, err := e.during(ctx, rest, ofProduct(e.product), func(ctx context.Context) error {
		return e.deleteMany(ctx, names[1:sharedServices-1])
	})
	if err != nil {
		return nil, err
	}
	return []Figure{
		atMost(one, float64(first.calls()), "calls", want.one),
		atMost(rest, float64(others.calls()), "calls", want.rest),
		atMost(rest, float64(others.refused), "refused", 0),
	}, nil
}

// ownDeletions deletes Services with an NLB each.
func (e *env) ownDeletions(ctx context.Context) ([]Figure, error) {
	const ports = 2
	life := fmt.Sprintf("create and delete, ports: %d", ports)
	t, err := e.during(ctx, life, ofProduct(e.product), func(ctx context.Context) error {
		if err := e.createService(ctx, e.newService("brief", ports)); err != nil {
			return err
		}
		return e.deleteService(ctx, "brief")
	})
	if err != nil {
		return nil, err
	}
	before, err := e.manager.used()
	if err != nil {
		return nil, err
	}
	names, err := e.createMany(ctx, "own", ownDeleted, func(*corev1.Service, int) {})
	if err != nil {
		return nil, err
	}
	after, err := e.manager.used()
	if err != nil {
		return nil, err
	}
	figures := []Figure{
		atMost(life, float64(t.calls()), "calls", 24),
		atMost(fmt.Sprintf("create %d Services at once: processor time of the manager", ownDeleted), after.cpu-before.cpu, "s", 0.5),
	}
	operation, took := fmt.Sprintf("delete %d Services at once", ownDeleted), time.Duration(0)
	t, err = e.during(ctx, operation, ofProduct(e.product), func(ctx context.Context) error {
		began := time.Now()
		defer func() { took = time.Since(began) }()
		return e.deleteMany(ctx, names)
	})
	if err != nil {
		return nil, err
	}
	return append(figures,
		atMost(operation+", the last one is gone", took.Seconds(), "s", 5),
		atMost(operation, float64(t.calls()), "calls", 150),
		atMost(operation, float64(t.refused), "refused", 0),
	), nil
}

// createMany creates Services at once, and returns their names.
func (e *env) createMany(ctx context.Context, prefix string, n int, change func(service *corev1.Service, i int)) ([]string, error) {
	var names []string
	workers, working := errgroup.WithContext(ctx)
	workers.SetLimit(writers)
	for i := range n {
		service := e.newService(fmt.Sprintf("%s-%d", prefix, i), 1)
		change(service, i)
		names = append(names, service.Name)
		workers.Go(func() error { return e.createService(working, service) })
	}
	if err := workers.Wait(); err != nil {
		return nil, err
	}
	_, err := e.settled(ctx, everything)
	return names, err
}

// deleteMany deletes Services at once, and waits until all are gone.
func (e *env) deleteMany(ctx context.Context, names []string) error {
	workers, working := errgroup.WithContext(ctx)
	for _, name := range names {
		workers.Go(func() error { return e.deleteService(working, name) })
	}
	return workers.Wait()
}
