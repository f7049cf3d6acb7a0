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
	figures, err := e.measure(ctx, one, ofProduct(e.product), func(ctx context.Context) error {
		return e.deleteService(ctx, names[0])
	}, most{"calls", want.one})
	if err != nil {
		return nil, err
	}
	others, err := e.measure(ctx, rest, ofProduct(e.product), func(ctx context.Context) error {
		return e.deleteMany(ctx, names[1:sharedServices-1])
	}, most{"calls", want.rest}, most{"refused", 0})
	return append(figures, others...), err
}

// ownDeletions deletes Services with an NLB each.
func (e *env) ownDeletions(ctx context.Context) ([]Figure, error) {
	const ports = 2
	life := fmt.Sprintf("create and delete, ports: %d", ports)
	figures, err := e.measure(ctx, life, ofProduct(e.product), func(ctx context.Context) error {
		if err := e.createService(ctx, e.newService("brief", ports)); err != nil {
			return err
		}
		return e.deleteService(ctx, "brief")
	}, most{"calls", 24})
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
	operation, took := fmt.Sprintf("delete %d Services at once", ownDeleted), time.Duration(0)
	deleted, err := e.measure(ctx, operation, ofProduct(e.product), func(ctx context.Context) error {
		began := time.Now()
		defer func() { took = time.Since(began) }()
		return e.deleteMany(ctx, names)
	}, most{"calls", 150}, most{"refused", 0})
	return append(append(figures,
		atMost(fmt.Sprintf("create %d Services at once: processor time of the manager", ownDeleted), after.cpu-before.cpu, "s", 0.5),
		atMost(operation+", the last one is gone", took.Seconds(), "s", 5)), deleted...), err
}

// createMany creates Services at once, and returns their names.
func (e *env) createMany(ctx context.Context, prefix string, n int, change func(service *corev1.Service, i int)) ([]string, error) {
	var services []*corev1.Service
	var names []string
	for i := range n {
		service := e.newService(fmt.Sprintf("%s-%d", prefix, i), 1)
		change(service, i)
		services, names = append(services, service), append(names, service.Name)
	}
	if err := each(ctx, services, e.createService); err != nil {
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
