package service

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/queue"
)

// locks are what a pass holds: its Service and, where other Services may use it, too, the load balancer.
type locks struct {
	balancers    *queue.KeyLock
	freeService  func()
	freeBalancer func()
	// balancer is the id of the load balancer, empty for one of the Service's own.
	balancer string
	// gone says that the Service was deleted while this waited.
	gone bool
}

// releaseAll frees what is held.
func (l *locks) releaseAll() {
	l.releaseBalancer()
	l.freeService()
}

func (l *locks) releaseBalancer() {
	if l.freeBalancer != nil {
		l.freeBalancer()
	}
	l.freeBalancer, l.balancer = nil, ""
}

// holdBalancer takes the lock of a load balancer in place of the one that is held; an empty id takes none. It reports whether it had to
// wait.
func (l *locks) holdBalancer(ctx context.Context, id string) (waited bool, err error) {
	if l.balancer == id {
		return false, nil
	}
	l.releaseBalancer() // nobody waits for one while holding another
	if id == "" {
		return false, nil
	}
	free, waited, err := l.balancers.Lock(ctx, id)
	if err != nil {
		return waited, fmt.Errorf("wait for load balancer %s: %w", id, err)
	}
	l.freeBalancer, l.balancer = free, id
	return waited, nil
}

// lockService keeps other passes from the Service, and other Services from the load balancer that it shares. It returns the Service as it
// is once both are free, because waiting may take minutes.
func (r *Reconciler) lockService(ctx context.Context, svc *corev1.Service) (*corev1.Service, *locks, error) {
	free, waited, err := r.services.Lock(ctx, mark.ServiceName(svc).String())
	if err != nil {
		return svc, nil, fmt.Errorf("wait for the Service: %w", err)
	}
	held := &locks{balancers: &r.balancers, freeService: free}
	known := r.stateOf(svc)
	params, _ := known.engine.Params(svc)
	also, err := held.holdBalancer(ctx, known.balancer.SharedID(svc, params))
	if err == nil && (waited || also) {
		var now *corev1.Service
		if now, err = r.currentService(svc); now != nil {
			svc = now
		}
		held.gone = err == nil && now == nil
	}
	if err != nil {
		held.releaseAll()
		return svc, nil, err
	}
	return svc, held, nil
}

// currentService returns the Service as the cache has it by now, nil when it is gone.
func (r *Reconciler) currentService(svc *corev1.Service) (*corev1.Service, error) {
	if !r.opts.Services.Informer().HasSynced() {
		return svc, nil
	}
	now, err := r.opts.Services.Lister().Services(svc.Namespace).Get(svc.Name)
	switch {
	case apierrors.IsNotFound(err), err == nil && now.UID != svc.UID:
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read the Service from the cache: %w", err)
	}
	return now, nil
}

// readLocked reads a load balancer, and takes its lock if only that shows which one it is. What was read without the lock may be half of
// another Service's change, and is read again. It returns what is known then, also with an error.
func (r *Reconciler) readLocked(
	ctx context.Context, svc *corev1.Service, params annotation.Params, held *locks, balancer driver.Balancer, read func(driver.Balancer) (driver.Balancer, error),
) (driver.Balancer, error) {
	for {
		found, err := read(balancer)
		if err != nil || found.SharedID(svc, params) == held.balancer {
			return found, err
		}
		balancer = found.Invalidate("read before the lock of the load balancer was held")
		waited, err := held.holdBalancer(ctx, found.SharedID(svc, params))
		if err != nil {
			return balancer, err
		}
		if waited {
			return balancer, alicloud.ErrInterrupted // the Service may have changed meanwhile: the next pass takes it as it is
		}
	}
}
