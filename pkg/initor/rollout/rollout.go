package rollout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	kruise "github.com/openkruise/kruise-api/apps/v1alpha1"
	kruiseclient "github.com/openkruise/kruise-api/client/clientset/versioned"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	bounds "github.com/alicloud-ccm/cloud-provider-alicloud/internal/waits"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/initor"
)

// ErrNoOpenKruise says that the cluster does not know BroadcastJobs.
var ErrNoOpenKruise = errors.New("OpenKruise is not installed in the cluster")

// errTimeout is the cause of a rollout's end when its time is over.
var errTimeout = errors.New("the time limit is reached")

// Rollout runs the initializer on nodes.
type Rollout struct {
	// Config says what is made; it must be valid. Nodes is filled in by Run.
	Config Config
	// Kube and Kruise are clients of the cluster; Kruise is needed for [DriverBroadcastJob].
	Kube   kubernetes.Interface
	Kruise kruiseclient.Interface
	// Progress takes the states of all nodes again and again while they change. May be nil.
	Progress func([]NodeState)
}

// Run initializes the nodes that are there when it begins and returns their states: all of them final, unless the time was over first or
// ctx ended. A node whose pod cannot be created, or has been unable to start, for two minutes fails. Unless the configuration says to keep
// it, what Run made is gone when it returns, after an error too. The error is [ErrNoOpenKruise], [ErrForeign], or one of the API
// server or of ctx.
func (r *Rollout) Run(ctx context.Context) (_ []NodeState, err error) {
	config := r.Config
	if err = r.suit(&config); err != nil {
		return nil, fmt.Errorf("ask the API server for its resources: %w", err)
	}
	nodes, err := Machines(ctx, r.Kube)
	if err != nil {
		return nil, err
	}
	for _, n := range nodes {
		config.Nodes = append(config.Nodes, n.Name)
	}
	objects, err := Objects(config)
	if err != nil {
		return nil, err
	}
	if err = r.claim(ctx, objects); err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeoutCause(ctx, config.Timeout, errTimeout)
	defer cancel()
	if err = r.replace(limited); err != nil {
		return nil, err
	}
	if !config.Keep {
		defer func() { err = initor.OneLine(err, r.remove(ctx, config)) }()
	}
	jobs, err := r.apply(limited, objects)
	if err != nil {
		return nil, err
	}
	final, err := r.follow(limited, sets.New(config.Nodes...), jobs)
	if err != nil && (final == nil || !errors.Is(context.Cause(limited), errTimeout)) {
		return nil, fmt.Errorf("follow the pods: %w", err)
	}
	return final, nil
}

// suit makes sure that the API server knows what the driver makes, and leaves the admission policy out where it does not know such.
func (r *Rollout) suit(config *Config) (err error) {
	if config.Driver == DriverBroadcastJob {
		installed, err := discovery.IsResourceEnabled(r.Kube.Discovery(), kruise.SchemeGroupVersion.WithResource("broadcastjobs"))
		if err != nil || !installed {
			return cmp.Or(err, ErrNoOpenKruise)
		}
	}
	if config.AdmissionPolicy {
		config.AdmissionPolicy, err = discovery.IsResourceEnabled(r.Kube.Discovery(),
			admissionv1.SchemeGroupVersion.WithResource("validatingadmissionpolicies"))
	}
	return err
}

// Status returns what a rollout of the same name did so far; without one it says that there is none.
func (r *Rollout) Status(ctx context.Context) (all []NodeState, found bool, err error) {
	jobs, err := r.jobs(ctx)
	if err != nil || len(jobs) == 0 {
		return nil, false, err
	}
	nodes, err := Machines(ctx, r.Kube)
	if err != nil {
		return nil, true, err
	}
	// Without labels: a BroadcastJob of others has pods with theirs.
	list, err := r.Kube.CoreV1().Pods(r.Config.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, true, fmt.Errorf("list the pods: %w", err)
	}
	pods := make([]*corev1.Pod, 0, len(list.Items))
	for i := range list.Items {
		pods = append(pods, &list.Items[i])
	}
	return r.states(nodes, pods, jobs, r.refusals(ctx, jobs)), true, nil
}

// followPeriod is how often the caches are read. It is short for a person and long against the read, which for a
// thousand nodes takes about a millisecond.
const followPeriod = 300 * time.Millisecond

// podSelector finds the pods of this and of other rollouts.
var podSelector = labels.Set{labelName: programName}.String()

// follow reports the states of the named nodes until none is pending, or waiting longer does not help, and returns the last ones. The error
// is ctx's if that ends first.
func (r *Rollout) follow(ctx context.Context, names sets.Set[string], jobs owners) (current []NodeState, err error) {
	watching, stop := context.WithCancel(ctx)
	all := informers.NewSharedInformerFactory(r.Kube, 0)
	ours := informers.NewSharedInformerFactoryWithOptions(r.Kube, 0, informers.WithNamespace(r.Config.Namespace),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = podSelector }))
	nodeLister, podLister := all.Core().V1().Nodes().Lister(), ours.Core().V1().Pods().Lister()
	for _, factory := range []informers.SharedInformerFactory{all, ours} {
		factory.StartWithContext(watching)
		defer factory.Shutdown()
	}
	defer stop() // before the factories are waited for
	for _, factory := range []informers.SharedInformerFactory{all, ours} {
		if synced := factory.WaitForCacheSyncWithContext(ctx); synced.Err != nil {
			return nil, fmt.Errorf("read nodes and pods: %w", synced.Err)
		}
	}
	waiting, refusals, next := patience{since: map[string]time.Time{}}, map[string]string(nil), time.Now().Add(eventPeriod)
	err = wait.PollUntilContextCancel(ctx, followPeriod, true, func(ctx context.Context) (bool, error) {
		nodes, err := nodeLister.List(labels.Everything())
		if err != nil {
			return false, fmt.Errorf("list the nodes: %w", err)
		}
		nodes = slices.DeleteFunc(nodes, func(n *corev1.Node) bool { return !names.Has(n.Name) })
		pods, err := podLister.List(labels.Everything())
		if err != nil {
			return false, fmt.Errorf("list the pods: %w", err)
		}
		if now := time.Now(); !now.Before(next) {
			if read := r.refusals(ctx, jobs); read != nil {
				refusals = read
			}
			next = now.Add(eventPeriod)
		}
		current = r.states(nodes, pods, jobs, refusals)
		waiting.judge(current, time.Now())
		if r.Progress != nil {
			r.Progress(current)
		}
		return !slices.ContainsFunc(current, func(s NodeState) bool { return s.Result == ResultPending }), nil
	})
	return current, err
}

// eventPeriod is how often the events of the jobs are read while nodes are pending. Pods are usually there before the first time.
const eventPeriod = 5 * time.Second

// reasonFailedCreate is the reason of the event on a Job or a BroadcastJob for which the API server takes no pod.
const reasonFailedCreate = "FailedCreate"

// refusals says why the API server takes no pods of the jobs, by the name of the job, for example because of a quota or a Pod Security
// Standard: only events of the jobs say so. Whoever may not read them gets nil: nodes stay pending until the time limit, and nothing says
// why.
func (r *Rollout) refusals(ctx context.Context, jobs owners) map[string]string {
	list, err := r.Kube.CoreV1().Events(r.Config.Namespace).List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("reason", reasonFailedCreate).String(),
	})
	if err != nil {
		klog.FromContext(ctx).V(2).Info("Cannot read the events that state why there are no pods", "namespace", r.Config.Namespace, "err", err)
		return nil
	}
	slices.SortStableFunc(list.Items, func(a, b corev1.Event) int { return a.LastTimestamp.Compare(b.LastTimestamp.Time) })
	texts := map[string]string{}
	for i := range list.Items { // the last one of each job counts
		event := &list.Items[i]
		if job := &event.InvolvedObject; event.Reason == reasonFailedCreate && jobs[job.UID] != "" {
			texts[job.Name] = joined(event.Reason, event.Message)
		}
	}
	return texts
}

// stuckAfter is how long the pod of a node may be impossible to create, or unable to start, before the node counts as failed. The kubelet
// tries to pull an image four times in it, so that a registry that fails once or is slow to answer does not end a rollout.
const stuckAfter = bounds.RolloutStuck

// Reasons why a pod cannot start. Those that are hopeless stay until somebody changes the pod.
var (
	hopelessReasons = sets.New("InvalidImageName", "ErrImageNeverPull")
	blockedReasons  = sets.New("ErrImagePull", "ImagePullBackOff", "ImageInspectError", "RegistryUnavailable", "SignatureValidationFailed",
		"CreateContainerConfigError", "CreateContainerError", "RunContainerError", corev1.PodReasonUnschedulable).Union(hopelessReasons)
)

// patience remembers since when the pod of each node has been unable to start, and how many nodes were finished then.
type patience struct {
	since    map[string]time.Time
	finished int
}

// judge has nodes fail whose pods have been unable to start for too long. A pod that starts after all is a node that goes on. Where there
// is no pod, each node that finishes is a reason to wait on.
func (p *patience) judge(states []NodeState, now time.Time) {
	finished := 0
	for i := range states {
		if states[i].Result != ResultPending {
			finished++
		}
	}
	progress := finished > p.finished
	p.finished = max(p.finished, finished)
	for i := range states {
		state := &states[i]
		if !state.Blocked {
			delete(p.since, state.Node)
			continue
		}
		since, known := p.since[state.Node]
		if !known || progress && state.NoPod {
			p.since[state.Node], since = now, now
		}
		if now.Sub(since) >= stuckAfter {
			state.Result = ResultFailed
		}
	}
}
