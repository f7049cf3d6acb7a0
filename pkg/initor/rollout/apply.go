package rollout

import (
	"context"
	"encoding/json"
	"fmt"

	kruise "github.com/openkruise/kruise-api/apps/v1alpha1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"golang.org/x/sync/errgroup"

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
	remove     func(ctx context.Context, opts metav1.DeleteOptions) error
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
		remove: func(ctx context.Context, opts metav1.DeleteOptions) error { return client.Delete(ctx, name, opts) },
	}
}

// handle returns the handle of one of the kinds that [Objects] makes.
func (r *Rollout) handle(object runtime.Object) (handle, error) {
	kube, namespace := r.opts.Kube, r.opts.Config.Namespace
	switch o := object.(type) {
	case *corev1.ServiceAccount:
		return handleOf(kube.CoreV1().ServiceAccounts(namespace), o.Kind, o.Name), nil
	case *rbacv1.ClusterRole:
		return handleOf(kube.RbacV1().ClusterRoles(), o.Kind, o.Name), nil
	case *rbacv1.ClusterRoleBinding:
		return handleOf(kube.RbacV1().ClusterRoleBindings(), o.Kind, o.Name), nil
	case *admissionv1.ValidatingAdmissionPolicy:
		return handleOf(kube.AdmissionregistrationV1().ValidatingAdmissionPolicies(), o.Kind, o.Name), nil
	case *admissionv1.ValidatingAdmissionPolicyBinding:
		return handleOf(kube.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings(), o.Kind, o.Name), nil
	case *batchv1.Job:
		return handleOf(kube.BatchV1().Jobs(namespace), kindJob, o.Name), nil
	case *kruise.BroadcastJob:
		return handleOf(r.opts.Kruise.AppsV1alpha1().BroadcastJobs(namespace), kindBroadcastJob, o.Name), nil
	default:
		return handle{}, fmt.Errorf("no client for a %T", object)
	}
}

// apply makes the objects and returns those that own pods. The identity comes first and one by one, or pods would start
// without it.
func (r *Rollout) apply(ctx context.Context, objects []runtime.Object) (owners, error) {
	jobs := owners{}
	made := make([]metav1.Object, len(objects))
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(parallelWrites)
	for i, object := range objects {
		h, err := r.handle(object)
		if err != nil {
			return nil, err
		}
		if !isJob(h.kind) {
			if _, err := applyOne(ctx, h, object); err != nil {
				return nil, err
			}
			continue
		}
		group.Go(func() (err error) {
			made[i], err = applyOne(groupCtx, h, object)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	for i, object := range made {
		if object != nil {
			jobs[object.GetUID()] = objects[i].GetObjectKind().GroupVersionKind().Kind
		}
	}
	return jobs, nil
}

func applyOne(ctx context.Context, h handle, object runtime.Object) (metav1.Object, error) {
	fields, err := fieldsOf(object)
	if err != nil {
		return nil, err
	}
	patch, err := json.Marshal(fields)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", h, err)
	}
	made, err := h.apply(ctx, patch)
	if err != nil {
		return nil, fmt.Errorf("apply %s: %w", h, err)
	}
	return made, nil
}

func isJob(kind string) bool { return kind == kindJob || kind == kindBroadcastJob }
