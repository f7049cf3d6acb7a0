package rollout

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
)

// eventPeriod is how often the events of the jobs are read while nodes are pending. Pods are usually there before the first time.
const eventPeriod = 5 * time.Second

// reasonFailedCreate is the reason of the event on a Job or a BroadcastJob for which the API server takes no pod.
const reasonFailedCreate = "FailedCreate"

// refused says why the API server takes no pods, for example because of a quota or a Pod Security Standard: only events of the jobs say so.
type refused struct {
	kube   kubernetes.Interface
	config Config
	next   time.Time
	// broadcast is the text for nodes of the BroadcastJob, byJob that for the node of a Job by the name of the Job.
	broadcast string
	byJob     map[string]string
}

// newRefused knows nothing, and reads the events after a period.
func (r *Rollout) newRefused() *refused {
	return &refused{kube: r.opts.Kube, config: r.opts.Config, next: time.Now().Add(eventPeriod)}
}

// follow reads the events again once they are due.
func (r *refused) follow(ctx context.Context, jobs owners) {
	if now := time.Now(); !now.Before(r.next) {
		r.read(ctx, jobs)
		r.next = now.Add(eventPeriod)
	}
}

// read reads the events. Whoever may not read them goes without: nodes stay pending until the time limit, and nothing says why.
func (r *refused) read(ctx context.Context, jobs owners) {
	list, err := r.kube.CoreV1().Events(r.config.Namespace).List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("reason", reasonFailedCreate).String(),
	})
	if err != nil {
		klog.FromContext(ctx).V(2).Info("Cannot read the events that state why there are no pods", "namespace", r.config.Namespace, "err", err)
		return
	}
	r.take(list.Items, jobs)
}

// take takes in the latest event of each job.
func (r *refused) take(events []corev1.Event, jobs owners) {
	r.broadcast, r.byJob = "", map[string]string{}
	latest := map[string]metav1.Time{}
	for i := range events {
		event := &events[i]
		job := &event.InvolvedObject
		if event.Reason != reasonFailedCreate || jobs[job.UID] == "" {
			continue
		}
		if at, known := latest[job.Name]; known && event.LastTimestamp.Before(&at) {
			continue
		}
		latest[job.Name] = event.LastTimestamp
		if text := joined(event.Reason, event.Message); jobs[job.UID] == kindBroadcastJob {
			r.broadcast = text
		} else {
			r.byJob[job.Name] = text
		}
	}
}

// why says why a node has no pod, empty if nothing is known to be wrong.
func (r *refused) why(node string) string {
	if r == nil {
		return ""
	}
	if text := r.byJob[jobName(r.config, node)]; text != "" {
		return text
	}
	return r.broadcast
}
