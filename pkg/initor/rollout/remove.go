package rollout

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/initor"
)

const (
	// removeTimeout bounds the removal, which goes on after an interrupt.
	removeTimeout = 30 * time.Second
	// gonePoll is how often it is looked whether the jobs of an earlier rollout are gone, which takes a moment.
	gonePoll = 200 * time.Millisecond
)

// ForeignError says that an object of the rollout's name exists and was made by somebody else, such as the Helm chart.
type ForeignError struct {
	// Object is its kind and name.
	Object string
}

// Error implements error.
func (e *ForeignError) Error() string {
	return e.Object + " exists and was not made by this command: choose another name"
}

// claim makes sure that no object of ours would overwrite somebody else's.
func (r *Rollout) claim(ctx context.Context, objects []runtime.Object) error {
	for _, object := range objects {
		h, err := r.handle(object)
		if err != nil {
			return err
		}
		if h.kind == kindJob {
			continue // there are as many as nodes, and their names are nobody else's
		}
		have, err := h.get(ctx)
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return fmt.Errorf("get %s: %w", h, err)
		case have.GetLabels()[labelManagedBy] != programName:
			return &ForeignError{Object: h.String()}
		}
	}
	return nil
}

// replace removes the jobs of an earlier rollout of the same name and waits until they are gone: a job that exists already
// would not run again.
func (r *Rollout) replace(ctx context.Context) error {
	if err := r.removeJobs(ctx); err != nil {
		return err
	}
	err := wait.PollUntilContextCancel(ctx, gonePoll, true, func(ctx context.Context) (bool, error) {
		jobs, err := r.jobs(ctx)
		return len(jobs) == 0, err
	})
	if err != nil {
		return fmt.Errorf("wait until the jobs of an earlier run are gone: %w", err)
	}
	return nil
}

// removeJobs deletes the jobs; the garbage collector takes their pods.
func (r *Rollout) removeJobs(ctx context.Context) error {
	background := metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)}
	ours := metav1.ListOptions{LabelSelector: labels.Set(labelsOf(r.opts.Config)).String()}
	namespace := r.opts.Config.Namespace
	if err := r.opts.Kube.BatchV1().Jobs(namespace).DeleteCollection(ctx, background, ours); err != nil {
		return fmt.Errorf("delete the Jobs of %s: %w", r.opts.Config.Name, err)
	}
	if r.opts.Config.Driver != DriverBroadcastJob {
		return nil
	}
	err := r.opts.Kruise.AppsV1alpha1().BroadcastJobs(namespace).DeleteCollection(ctx, background, ours)
	if err != nil {
		return fmt.Errorf("delete the BroadcastJob %s: %w", r.opts.Config.Name, err)
	}
	return nil
}

// remove takes away what the rollout made, the jobs first: they need the identity to the end. It goes on when ctx has ended,
// for an interrupted rollout leaves nothing behind either.
func (r *Rollout) remove(ctx context.Context, config Config) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeTimeout)
	defer cancel()
	errs := []error{r.removeJobs(ctx)}
	for _, object := range slices.Backward(identityObjects(config)) {
		h, err := r.handle(object)
		if err == nil {
			err = h.remove(ctx, metav1.DeleteOptions{})
		}
		if err != nil && !apierrors.IsNotFound(err) {
			errs = append(errs, fmt.Errorf("delete %s: %w", h, err))
		}
	}
	return initor.OneLine(errs...)
}
