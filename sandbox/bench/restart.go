package bench

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
)

const (
	manyServiceCount = 500
	manyServicePorts = 2

	restartMaxReads = 1100
	// Seconds within which a new leader serves the first change. It may be behind all other Services, and the API of NLB shows at most twenty
	// groups a second.
	firstChangeCLB = 5
	firstChangeNLB = manyServiceCount*manyServicePorts/20 + 5
)

// restartWithServices measures what a new leader does with Services of a product that are all as they should be, and how soon it serves one
// that is not.
func restartWithServices(firstChangeWithin float64) step {
	return func(e *env, ctx context.Context) ([]Figure, error) {
		if err := e.serveMany(ctx); err != nil {
			return nil, err
		}
		operation := fmt.Sprintf("restart with %d unchanged Services of %d ports", manyServiceCount, manyServicePorts)
		figures, err := e.measure(ctx, operation, ofProduct(e.product), func(ctx context.Context) error {
			return e.startCalling(ctx, e.product)
		}, most{"reads", restartMaxReads}, most{"writes", 0})
		if err != nil {
			return nil, err
		}
		if err = e.stopManager(); err != nil {
			return nil, err
		}
		served, err := e.firstServed(ctx, manyName(manyServiceCount/2))
		return append(figures, atMost(fmt.Sprintf("first change served after becoming leader, %d Services", manyServiceCount), served.Seconds(),
			"s", firstChangeWithin)), err
	}
}

// firstServed changes a Service, starts a manager, and returns how long after becoming leader that serves the change.
func (e *env) firstServed(ctx context.Context, service string) (time.Duration, error) {
	e.begin()
	if err := e.annotateService(ctx, service, annotationScheduler, "sch"); err != nil {
		return 0, err
	}
	if err := e.startManager(ctx); err != nil {
		return 0, err
	}
	if err := e.untilCalled(ctx, writes(ofProduct(e.product))); err != nil {
		return 0, err
	}
	return e.since(writes(ofProduct(e.product)))[0].Time.Sub(e.manager.leading), nil
}

// startCalling starts a manager and waits until it has called a product.
func (e *env) startCalling(ctx context.Context, product string, flags ...string) error {
	if err := e.startManager(ctx, flags...); err != nil {
		return err
	}
	return e.untilCalled(ctx, ofProduct(product))
}

// serveMany makes the cloud and the cluster such as a manager leaves them that has served many Services of the scenario's product, and stops
// the manager.
func (e *env) serveMany(ctx context.Context) error {
	if err := e.readyForServices(ctx, clbNodes); err != nil {
		return err
	}
	first, err := e.recordService(ctx, e.newService("template", manyServicePorts))
	if err != nil {
		return err
	}
	if err := e.stopManager(); err != nil {
		return err
	}
	services := make([]*corev1.Service, manyServiceCount-1)
	for i := range services {
		services[i] = e.newService(manyName(i), manyServicePorts)
	}
	return e.replay(ctx, services, func(int) *template { return first })
}

func manyName(i int) string { return fmt.Sprintf("many-%d", i) }
