package lightnode

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"
	"k8s.io/klog/v2"
)

const (
	// runsAtOnce is how many programs run at the same time: more would only wait for the processor.
	runsAtOnce = 16
	// A container that failed starts again after a pause that doubles. A real kubelet begins with ten seconds, which no test waits for.
	restartPause    = 500 * time.Millisecond
	maxRestartPause = 10 * time.Second
)

// reportBackoff outlasts a conflict with another writer and a moment without an answer.
var reportBackoff = wait.Backoff{Duration: 20 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 10}

// errEnded says that somebody else gave a pod its end, as an eviction does.
var errEnded = errors.New("it has ended meanwhile")

// Runner runs the containers of pods that are programs of this project. All other pods only look as if they ran.
type Runner interface {
	// Runs says whether the runner runs this pod, which then has one container.
	Runs(pod *corev1.Pod) bool
	// Run runs the pod's container once, to its end or ctx's. An error means that the container could not be started.
	Run(ctx context.Context, pod *corev1.Pod, instanceID string) (Exit, error)
}

// Exit is how a container ended.
type Exit struct {
	Code    int32
	Message string // the termination message
}

// runs are the pods that a runner runs, each in a goroutine of its own until it has ended or is stopped.
type runs struct {
	client kubernetes.Interface
	runner Runner
	slots  chan struct{}
	group  sync.WaitGroup

	mu   sync.Mutex
	stop map[types.UID]context.CancelFunc // guarded by mu
}

func newRuns(client kubernetes.Interface, runner Runner) *runs {
	return &runs{client: client, runner: runner, slots: make(chan struct{}, runsAtOnce), stop: map[types.UID]context.CancelFunc{}}
}

// takes says whether a pod's container is really run.
func (r *runs) takes(pod *corev1.Pod) bool { return r.runner != nil && r.runner.Runs(pod) }

// start runs a pod unless it is running already. The run ends with the machine.
func (r *runs) start(pod *corev1.Pod, machine *machine) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stop[pod.UID] != nil || machine.running.Err() != nil {
		return
	}
	ctx, cancel := context.WithCancel(machine.running)
	r.stop[pod.UID] = cancel
	r.group.Go(func() {
		defer r.end(pod.UID)
		err := r.run(ctx, pod.DeepCopy(), machine)
		if err != nil && ctx.Err() == nil && !errors.Is(err, errEnded) && !apierrors.IsNotFound(err) {
			klog.FromContext(ctx).Error(err, "Light kubelet gave a pod up", "pod", klog.KObj(pod))
		}
	})
}

// end stops a pod's run; one that does not run is none of its business.
func (r *runs) end(uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if stop := r.stop[uid]; stop != nil {
		stop()
		delete(r.stop, uid)
	}
}

// run runs the pod's container until it need not start again.
func (r *runs) run(ctx context.Context, pod *corev1.Pod, machine *machine) error {
	p := &reported{Pod: pod, machine: machine}
	for pause := restartPause; ; pause = min(2*pause, maxRestartPause) {
		since := metav1.Now()
		if err := r.report(ctx, p, func(s *corev1.ContainerStatus) { containerStarted(s, since) }); err != nil {
			return err
		}
		exit, err := r.once(ctx, p.Pod, machine)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		end := terminated(exit, err, since)
		if err := r.report(ctx, p, func(s *corev1.ContainerStatus) { s.State = corev1.ContainerState{Terminated: end} }); err != nil {
			return err
		}
		if !restarts(p.Pod, end) {
			return nil
		}
		if err := r.report(ctx, p, func(s *corev1.ContainerStatus) { containerWaits(s, end, pause) }); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}

func (r *runs) once(ctx context.Context, pod *corev1.Pod, machine *machine) (Exit, error) {
	select {
	case r.slots <- struct{}{}:
		defer func() { <-r.slots }()
		return r.runner.Run(ctx, pod, machine.instanceID)
	case <-ctx.Done():
		return Exit{}, ctx.Err()
	}
}

// reported is a pod as it was last seen in the API.
type reported struct {
	*corev1.Pod
	machine *machine
}

// report changes the container's status in the API, and the pod's with it. It fails for good when the pod is gone or has ended.
func (r *runs) report(ctx context.Context, p *reported, change func(*corev1.ContainerStatus)) error {
	pods := r.client.CoreV1().Pods(p.Namespace)
	again := func(err error) bool {
		return !errors.Is(err, errEnded) && !apierrors.IsNotFound(err) && ctx.Err() == nil
	}
	outdated := false
	return retry.OnError(reportBackoff, again, func() error {
		pod := p.DeepCopy()
		if outdated {
			var err error
			if pod, err = pods.Get(ctx, p.Name, metav1.GetOptions{}); err != nil {
				return fmt.Errorf("read pod %s: %w", p.Name, err)
			}
		}
		if pod.UID != p.UID || finished(pod) {
			return fmt.Errorf("report pod %s: %w", p.Name, errEnded)
		}
		status := &pod.Status
		if len(status.ContainerStatuses) == 0 {
			container := pod.Spec.Containers[0]
			status.ContainerStatuses = []corev1.ContainerStatus{{Name: container.Name, Image: container.Image, ImageID: container.Image}}
		}
		change(&status.ContainerStatuses[0])
		ranPod(pod, p.machine)
		updated, err := pods.UpdateStatus(ctx, pod, metav1.UpdateOptions{})
		if outdated = err != nil; outdated {
			return wrap(err, "report pod %s", p.Name)
		}
		p.Pod = updated
		return nil
	})
}
