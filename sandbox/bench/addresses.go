package bench

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
)

// addresses notes when each of some Services shows an address for the first time, and on which load balancer, as a watch shows it.
type addresses struct {
	of        map[string]bool // the names of the Services
	mu        sync.Mutex
	first     map[string]time.Time
	balancers map[string]string
}

// watchAddresses watches Services, which need not be there yet. The returned function ends that.
func (e *env) watchAddresses(ctx context.Context, services []*corev1.Service) (*addresses, func(), error) {
	a := &addresses{of: map[string]bool{}, first: map[string]time.Time{}, balancers: map[string]string{}}
	for _, service := range services {
		a.of[service.Name] = true
	}
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	factory := informers.NewSharedInformerFactoryWithOptions(e.client, 0, informers.WithNamespace(namespace))
	stop := func() {
		cancel()
		factory.Shutdown()
	}
	_, err := factory.Core().V1().Services().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: a.see,
		UpdateFunc: func(_, now any) { a.see(now) }})
	if err != nil {
		stop()
		return nil, nil, fmt.Errorf("watch the Services: %w", err)
	}
	factory.Start(running.Done())
	factory.WaitForCacheSync(ctx.Done())
	return a, stop, nil
}

func (a *addresses) see(object any) {
	service, ok := object.(*corev1.Service)
	if !ok || !a.of[service.Name] || len(service.Status.LoadBalancer.Ingress) == 0 {
		return
	}
	now := time.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, seen := a.first[service.Name]; !seen {
		a.first[service.Name] = now
	}
	a.balancers[service.Name] = service.Labels[labelLoadBalancer]
}

func (a *addresses) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.first)
}

// last is how long after a time the last address so far was shown.
func (a *addresses) last(since time.Time) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	longest := time.Duration(0)
	for _, at := range a.first {
		longest = max(longest, at.Sub(since))
	}
	return longest
}

// median is how long after a time the address of the median Service was shown.
func (a *addresses) median(since time.Time) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	var delays []time.Duration
	for _, at := range a.first {
		delays = append(delays, at.Sub(since))
	}
	return quantile(delays, 0.5)
}

// after returns how long after a time of its load balancer each Service showed its address. Services whose load balancer has no such time
// are left out.
func (a *addresses) after(times map[string]time.Time) []time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	var delays []time.Duration
	for name, at := range a.first {
		if began, ok := times[a.balancers[name]]; ok {
			delays = append(delays, at.Sub(began))
		}
	}
	return delays
}
