package rollout

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
)

// replaced are the pods that were removed because they had ended as a whole, as evicted ones do. A Job makes another one by itself;
// OpenKruise keeps such a pod for ever, and its node would go without.
type replaced struct {
	pods  map[types.UID]bool
	times map[string]int // by node
}

func newReplaced() *replaced { return &replaced{pods: map[types.UID]bool{}, times: map[string]int{}} }

// remove removes such pods, from the cluster and from pods. A node whose pods end so again and again keeps the last one. A
// deletion that fails for a passing reason is tried again the next time: one lost answer must not end the run and take away
// the pods of all other nodes.
func (r *replaced) remove(ctx context.Context, client podDeleter, pods []*corev1.Pod, jobs owners) ([]*corev1.Pod, error) {
	var left []*corev1.Pod
	for _, pod := range pods {
		failed := pod.Status.Phase == corev1.PodFailed && jobs.own(pod) && metav1.GetControllerOf(pod).Kind == kindBroadcastJob
		if failed && !r.pods[pod.UID] && r.times[nodeOf(pod)] < restartLimit {
			err := client.Delete(ctx, pod.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(pod.UID))})
			switch {
			case err == nil, apierrors.IsNotFound(err), apierrors.IsConflict(err):
				r.pods[pod.UID] = true
				r.times[nodeOf(pod)]++
			case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
				return nil, fmt.Errorf("delete pod %s, so that OpenKruise replaces it: %w", pod.Name, err)
			default:
				klog.FromContext(ctx).Error(err, "Cannot delete a failed pod; trying again", "pod", pod.Name)
			}
		}
		if !r.pods[pod.UID] {
			left = append(left, pod)
		}
	}
	return left, nil
}

// podDeleter deletes pods. client-go's PodInterface satisfies it.
type podDeleter interface {
	Delete(ctx context.Context, name string, opts metav1.DeleteOptions) error
}
