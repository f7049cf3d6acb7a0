package rollout

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	corelisters "k8s.io/client-go/listers/core/v1"
)

// followPeriod is how often the caches are read. It is short for a person and long against the read, which for a
// thousand nodes takes about a millisecond.
const followPeriod = 300 * time.Millisecond

// view is a cached picture of nodes and of the rollout's pods.
type view struct {
	nodes corelisters.NodeLister
	pods  corelisters.PodLister
}

// follow reports the states of the named nodes until none is pending, or waiting longer does not help. It returns ctx's error if that ends first.
func (r *Rollout) follow(ctx context.Context, names map[string]bool, jobs owners, waiting *patience, creations *refused) error {
	watching, stop := context.WithCancel(ctx)
	all := informers.NewSharedInformerFactory(r.opts.Kube, 0)
	ours := informers.NewSharedInformerFactoryWithOptions(r.opts.Kube, 0, informers.WithNamespace(r.opts.Config.Namespace),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = podSelector }))
	v := view{nodes: all.Core().V1().Nodes().Lister(), pods: ours.Core().V1().Pods().Lister()}
	for _, factory := range []informers.SharedInformerFactory{all, ours} {
		factory.StartWithContext(watching)
		defer factory.Shutdown()
	}
	defer stop() // before the factories are waited for
	for _, factory := range []informers.SharedInformerFactory{all, ours} {
		if synced := factory.WaitForCacheSyncWithContext(ctx); synced.Err != nil {
			return fmt.Errorf("read nodes and pods: %w", synced.Err)
		}
	}
	gone := newReplaced()
	return wait.PollUntilContextCancel(ctx, followPeriod, true, func(ctx context.Context) (bool, error) {
		nodes, pods, err := v.list(names)
		if err != nil {
			return false, err
		}
		if pods, err = gone.remove(ctx, r.opts.Kube.CoreV1().Pods(r.opts.Config.Namespace), pods, jobs); err != nil {
			return false, err
		}
		creations.follow(ctx, jobs)
		current := states(nodes, pods, jobs, creations)
		waiting.judge(current, time.Now())
		r.opts.Progress(current)
		return !slices.ContainsFunc(current, func(s NodeState) bool { return s.Result == ResultPending }), nil
	})
}

// list returns the named nodes and the pods.
func (v view) list(names map[string]bool) ([]*corev1.Node, []*corev1.Pod, error) {
	nodes, err := v.nodes.List(labels.Everything())
	if err != nil {
		return nil, nil, fmt.Errorf("list the nodes: %w", err)
	}
	pods, err := v.pods.List(labels.Everything())
	if err != nil {
		return nil, nil, fmt.Errorf("list the pods: %w", err)
	}
	return among(nodes, names), pods, nil
}
