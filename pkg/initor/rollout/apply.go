package rollout

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/nodes"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/initor"
)

// parallelWrites bounds the requests under way, for a cluster with a thousand nodes has a thousand Jobs.
const parallelWrites = 16

// objectClient is what this package does with the objects of one kind.
type objectClient[T metav1.Object] interface {
	Get(ctx context.Context, name string, opts metav1.GetOptions) (T, error)
	Patch(ctx context.Context, name string, kind types.PatchType, data []byte, opts metav1.PatchOptions, subresources ...string) (T, error)
	Delete(ctx context.Context, name string, opts metav1.DeleteOptions) error
}

// handle is an object with the client of its kind.
type handle struct {
	kind, name string
	get        func(ctx context.Context) (metav1.Object, error)
	apply      func(ctx context.Context, patch []byte) (metav1.Object, error)
	remove     func(ctx context.Context) error
}

func (h handle) String() string { return h.kind + " " + h.name }

func handleOf[T metav1.Object](client objectClient[T], kind, name string) handle {
	force := metav1.PatchOptions{FieldManager: initor.FieldManager, Force: new(true)}
	return handle{
		kind: kind, name: name,
		get: func(ctx context.Context) (metav1.Object, error) { return client.Get(ctx, name, metav1.GetOptions{}) },
		apply: func(ctx context.Context, patch []byte) (metav1.Object, error) {
			return client.Patch(ctx, name, types.ApplyPatchType, patch, force)
		},
		remove: func(ctx context.Context) error { return client.Delete(ctx, name, metav1.DeleteOptions{}) },
	}
}

const kindPolicy = "ValidatingAdmissionPolicy"

// handle returns the handle of one of the objects that [Objects] makes.
func (r *Rollout) handle(object *unstructured.Unstructured) handle {
	kube, namespace, name := r.Kube, r.Config.Namespace, object.GetName()
	switch kind := object.GetKind(); kind {
	case "ServiceAccount":
		return handleOf(kube.CoreV1().ServiceAccounts(namespace), kind, name)
	case "ClusterRole":
		return handleOf(kube.RbacV1().ClusterRoles(), kind, name)
	case "ClusterRoleBinding":
		return handleOf(kube.RbacV1().ClusterRoleBindings(), kind, name)
	case kindPolicy:
		return handleOf(kube.AdmissionregistrationV1().ValidatingAdmissionPolicies(), kind, name)
	case kindPolicy + "Binding":
		return handleOf(kube.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings(), kind, name)
	case kindJob:
		return handleOf(kube.BatchV1().Jobs(namespace), kind, name)
	default:
		return handleOf(r.Kruise.AppsV1alpha1().BroadcastJobs(namespace), kind, name)
	}
}

// apply makes the objects and returns those that own pods. The identity comes first and one by one, or pods would start
// without it.
func (r *Rollout) apply(ctx context.Context, objects []*unstructured.Unstructured) (owners, error) {
	jobs, mu := owners{}, sync.Mutex{}
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(parallelWrites)
	for _, object := range objects {
		h := r.handle(object)
		patch, err := object.MarshalJSON()
		if err != nil {
			return nil, fmt.Errorf("encode %s: %w", h, err)
		}
		isJob := h.kind == kindJob || h.kind == kindBroadcastJob
		do := func() error {
			made, err := h.apply(groupCtx, patch)
			if err != nil {
				return fmt.Errorf("apply %s: %w", h, err)
			}
			mu.Lock()
			defer mu.Unlock()
			if isJob {
				jobs[made.GetUID()] = h.kind
			}
			return nil
		}
		if isJob {
			group.Go(do)
		} else if err := do(); err != nil {
			return nil, err
		}
	}
	return jobs, group.Wait()
}

const (
	// removeTimeout bounds the removal, which goes on after an interrupt.
	removeTimeout = 30 * time.Second
	// gonePoll is how often it is looked whether the jobs of an earlier rollout are gone, which takes a moment.
	gonePoll = 200 * time.Millisecond
)

// ErrForeign says that an object of the rollout's name exists and was made by somebody else, such as the Helm chart.
var ErrForeign = errors.New("exists and was not made by this command: choose another name")

// claim makes sure that no object of ours would overwrite somebody else's.
func (r *Rollout) claim(ctx context.Context, objects []*unstructured.Unstructured) error {
	for _, object := range objects {
		h := r.handle(object)
		if h.kind == kindJob {
			continue // there are as many as nodes, and their names are nobody else's
		}
		have, err := h.get(ctx)
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return fmt.Errorf("get %s: %w", h, err)
		case have.GetLabels()[labelManagedBy] != programName:
			return fmt.Errorf("%s %w", h, ErrForeign)
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
	name, namespace := r.Config.Name, r.Config.Namespace
	ours := metav1.ListOptions{LabelSelector: labels.Set{labelName: programName, labelInstance: name, labelManagedBy: programName}.String()}
	if err := r.Kube.BatchV1().Jobs(namespace).DeleteCollection(ctx, background, ours); err != nil {
		return fmt.Errorf("delete the Jobs of %s: %w", r.Config.Name, err)
	}
	if r.Config.Driver != DriverBroadcastJob {
		return nil
	}
	err := r.Kruise.AppsV1alpha1().BroadcastJobs(namespace).DeleteCollection(ctx, background, ours)
	if err != nil {
		return fmt.Errorf("delete the BroadcastJob %s: %w", r.Config.Name, err)
	}
	return nil
}

// remove takes away what the rollout made, the jobs first: they need the identity to the end. It goes on when ctx has ended,
// for an interrupted rollout leaves nothing behind either.
func (r *Rollout) remove(ctx context.Context, config Config) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeTimeout)
	defer cancel()
	objects, err := identityObjects(config)
	errs := []error{err, r.removeJobs(ctx)}
	for _, object := range slices.Backward(objects) {
		h := r.handle(object)
		if err := h.remove(ctx); err != nil && !apierrors.IsNotFound(err) {
			errs = append(errs, fmt.Errorf("delete %s: %w", h, err))
		}
	}
	return initor.OneLine(errs...)
}

// Machines lists the nodes that have a machine, which is all but virtual-kubelet's.
func Machines(ctx context.Context, kube kubernetes.Interface) ([]*corev1.Node, error) {
	list, err := kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list the nodes: %w", err)
	}
	var machines []*corev1.Node
	for i := range list.Items {
		if n := &list.Items[i]; !nodes.IsVirtualKubelet(n) {
			machines = append(machines, n)
		}
	}
	return machines, nil
}

// jobs returns what exists of the rollout's jobs, whoever made them: the chart's can be looked at too.
func (r *Rollout) jobs(ctx context.Context) (owners, error) {
	found := owners{}
	list, err := r.Kube.BatchV1().Jobs(r.Config.Namespace).List(ctx,
		metav1.ListOptions{LabelSelector: labels.Set{labelName: programName, labelInstance: r.Config.Name}.String()})
	if err != nil {
		return nil, fmt.Errorf("list the Jobs of %s: %w", r.Config.Name, err)
	}
	for i := range list.Items {
		found[list.Items[i].UID] = kindJob
	}
	if r.Config.Driver != DriverBroadcastJob {
		return found, nil
	}
	broadcast, err := r.Kruise.AppsV1alpha1().BroadcastJobs(r.Config.Namespace).Get(ctx, r.Config.Name, metav1.GetOptions{})
	switch {
	case err == nil:
		found[broadcast.UID] = kindBroadcastJob
	case !apierrors.IsNotFound(err):
		return nil, fmt.Errorf("get %s %s: %w", kindBroadcastJob, r.Config.Name, err)
	}
	return found, nil
}
