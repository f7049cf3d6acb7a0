package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
func restartWithServices(product string, firstChangeWithin float64) func(context.Context, run) ([]Figure, error) {
	return func(ctx context.Context, r run) (figures []Figure, err error) {
		e, err := newEnv(ctx, r, envOptions{nodes: clbNodes})
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, e.stop()) }()
		e.product = product
		if err = e.serveMany(ctx); err != nil {
			return nil, err
		}
		operation := fmt.Sprintf("restart with %d unchanged Services of %d ports", manyServiceCount, manyServicePorts)
		t, err := e.during(ctx, operation, ofProduct(product), func(ctx context.Context) error { return e.startCalling(ctx) })
		if err != nil {
			return nil, err
		}
		figures = append(figures,
			atMost(operation, float64(t.reads), "reads", restartMaxReads), atMost(operation, float64(t.writes), "writes", 0))
		change, err := e.firstChange(ctx, firstChangeWithin)
		return append(figures, change), err
	}
}

// firstChange restarts the manager and at the same time changes a Service.
func (e *env) firstChange(ctx context.Context, within float64) (Figure, error) {
	if err := e.stopManager(); err != nil {
		return Figure{}, err
	}
	served, err := e.firstServed(ctx, manyName(manyServiceCount/2))
	if err != nil {
		return Figure{}, err
	}
	return atMost(fmt.Sprintf("first change served after becoming leader, %d Services", manyServiceCount), served.Seconds(), "s", within), nil
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

// startCalling starts a manager and waits until it has called the product.
func (e *env) startCalling(ctx context.Context, flags ...string) error {
	if err := e.startManager(ctx, flags...); err != nil {
		return err
	}
	return e.untilCalled(ctx, ofProduct(e.product))
}

// serveMany makes the cloud and the cluster such as a manager leaves them that has served many Services of the scenario's product, and stops
// the manager.
func (e *env) serveMany(ctx context.Context) error {
	if err := e.readyForServices(ctx, clbNodes); err != nil {
		return err
	}
	c := newCaller(e.url, "replay-", writers)
	defer c.close()
	first, err := e.recordService(ctx, c, e.newService("template", manyServicePorts))
	if err != nil {
		return err
	}
	if err := e.stopManager(); err != nil {
		return err
	}
	return e.replayMany(ctx, c, first)
}

// replayMany makes the Services that are to be like the first one.
func (e *env) replayMany(ctx context.Context, c *caller, first *template) error {
	services := make([]*corev1.Service, manyServiceCount-1)
	for i := range services {
		services[i] = e.newService(manyName(i), manyServicePorts)
	}
	begin := time.Now()
	err := each(ctx, services, func(ctx context.Context, service *corev1.Service) error {
		created, failed := e.client.CoreV1().Services(namespace).Create(ctx, service, metav1.CreateOptions{})
		if failed != nil {
			return fmt.Errorf("create a Service: %w", failed)
		}
		return first.copyTo(ctx, e, c, created)
	})
	e.say("%d Services after %.1f s", manyServiceCount, time.Since(begin).Seconds())
	return err
}

func manyName(i int) string { return fmt.Sprintf("many-%d", i) }
