package bench

import (
	"context"
	"errors"
	"fmt"
	"strings"
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

	scaleServiceNodes = 500
	scaleServiceMiB   = 250
	mixedNodes        = 20
	mixedMiB          = 200
)

// restartWithServices measures what a new leader does with Services of a product that are all as they should be, and how soon it serves one
// that is not.
func restartWithServices(product string, firstChangeWithin float64) func(context.Context, run) ([]Figure, error) {
	return func(ctx context.Context, r run) (figures []Figure, err error) {
		e, err := newEnv(ctx, r, envOptions{nodes: clbNodes})
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, e.stop(ctx)) }()
		e.product = product
		if err = e.serveMany(ctx, clbNodes, product); err != nil {
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
	if err := e.stopManager(ctx); err != nil {
		return Figure{}, err
	}
	served, err := e.firstServed(ctx, manyName(e.product, manyServiceCount/2))
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

// manyServices measures the memory of a manager with many Services of each product and many nodes, right after its start, which is when it
// has read most.
func manyServices(nodes int, goal float64, products ...string) func(context.Context, run) ([]Figure, error) {
	return func(ctx context.Context, r run) (figures []Figure, err error) {
		e, err := newEnv(ctx, r, envOptions{nodes: nodes})
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, e.stop(ctx)) }()
		if err = e.serveMany(ctx, nodes, products...); err != nil {
			return nil, err
		}
		operation := fmt.Sprintf("%d Services of %d ports (%s), %d nodes: resident memory after a restart",
			manyServiceCount*len(products), manyServicePorts, strings.Join(products, ", "), nodes)
		if _, err = e.during(ctx, operation, everything, func(ctx context.Context) error {
			return e.startCalling(ctx, fastClient...)
		}); err != nil {
			return nil, err
		}
		mib, err := residentMiB(e.manager.pid())
		if err != nil {
			return nil, err
		}
		return []Figure{atMost(operation, mib, "MiB", goal)}, nil
	}
}

// startCalling starts a manager and waits until it has called the product.
func (e *env) startCalling(ctx context.Context, flags ...string) error {
	if err := e.startManager(ctx, flags...); err != nil {
		return err
	}
	return e.untilCalled(ctx, ofProduct(e.product))
}

// serveMany makes the cloud and the cluster such as a manager leaves them that has served many Services of each product, and stops the
// manager.
func (e *env) serveMany(ctx context.Context, nodes int, products ...string) error {
	if err := e.readyForServices(ctx, nodes); err != nil {
		return err
	}
	c := newCaller(e.url, "replay-", writers)
	defer c.close()
	templates := make([]*template, len(products))
	for i, product := range products {
		var err error
		if templates[i], err = e.recordTemplate(ctx, c, product); err != nil {
			return err
		}
	}
	if err := e.stopManager(ctx); err != nil {
		return err
	}
	for _, first := range templates {
		if err := e.replayMany(ctx, c, first); err != nil {
			return err
		}
	}
	return nil
}

// replayMany makes the Services that are to be like the first one.
func (e *env) replayMany(ctx context.Context, c *caller, first *template) error {
	services := make([]*corev1.Service, manyServiceCount-1)
	for i := range services {
		services[i] = newServiceOf(first.product, manyName(first.product, i), manyServicePorts)
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

func manyName(product string, i int) string { return fmt.Sprintf("many-%s-%d", product, i) }
