package service

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/kubernetes"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
)

// serviceWriter is the one place that writes Services. Every change is a patch of the status subresource, which also takes
// finalizers and labels, so that the role needs no right to change a Service's spec.
type serviceWriter struct {
	client kubernetes.Interface
}

// changeService applies f to a copy of the Service and writes the difference. It returns the Service as it is then; a Service
// that is gone, or was replaced by another of its name, is nil.
func (w serviceWriter) changeService(ctx context.Context, svc *corev1.Service, f func(*corev1.Service)) (*corev1.Service, error) {
	changed := svc.DeepCopy()
	f(changed)
	written, err := w.patchService(ctx, svc, changed)
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil, nil
	}
	return written, err
}

// changeExactly is [serviceWriter.changeService] for this version of the Service only: one that has changed meanwhile is nil.
func (w serviceWriter) changeExactly(ctx context.Context, svc *corev1.Service, f func(*corev1.Service)) (*corev1.Service, error) {
	changed := svc.DeepCopy()
	f(changed)
	before := svc.DeepCopy()
	before.ResourceVersion = "" // so that the patch names it, and is refused on any other one
	written, err := w.patchService(ctx, before, changed)
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil, nil
	}
	return written, err
}

// patchService writes the difference of two states of a Service.
func (w serviceWriter) patchService(ctx context.Context, svc, changed *corev1.Service) (*corev1.Service, error) {
	patch, err := servicePatch(svc, changed)
	if err != nil || patch == nil {
		return svc, err
	}
	written, err := w.client.CoreV1().Services(svc.Namespace).Patch(
		ctx, svc.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	if err != nil {
		return nil, fmt.Errorf("patch Service %s/%s: %w", svc.Namespace, svc.Name, err)
	}
	return written, nil
}

// servicePatch returns the patch, nil when nothing differs. It names the UID, so that the API server refuses it on
// another Service of the same name.
func servicePatch(before, after *corev1.Service) ([]byte, error) {
	if equality.Semantic.DeepEqual(before, after) {
		return nil, nil // most passes; encoding both would take several times as long
	}
	old, err := json.Marshal(before)
	if err != nil {
		return nil, fmt.Errorf("encode Service: %w", err)
	}
	wanted, err := json.Marshal(after)
	if err != nil {
		return nil, fmt.Errorf("encode Service: %w", err)
	}
	if string(old) == string(wanted) {
		return nil, nil
	}
	unidentified := before.DeepCopy()
	unidentified.UID = ""
	if old, err = json.Marshal(unidentified); err != nil {
		return nil, fmt.Errorf("encode Service: %w", err)
	}
	patch, err := strategicpatch.CreateTwoWayMergePatch(old, wanted, corev1.Service{})
	if err != nil {
		return nil, fmt.Errorf("make a patch of Service %s/%s: %w", before.Namespace, before.Name, err)
	}
	return patch, nil
}

// addFinalizer makes sure that the Service is not gone before its load balancer is. What the first pass is about to write goes
// with it.
func addFinalizer(svc *corev1.Service, engine driver.Engine) {
	finalizer := engine.Product().Finalizer
	if driver.HasFinalizer(svc, finalizer) {
		return
	}
	svc.Finalizers = append(svc.Finalizers, finalizer)
	storeFirstIntent(svc, engine)
}

// removeOurs removes everything of ours from a Service that no longer has a load balancer. The status and the stock finalizer of a
// Service of another class belong to that class.
func removeOurs(svc *corev1.Service, product driver.Product, foreign bool) {
	removeMarks(svc, product)
	if foreign {
		return
	}
	svc.Finalizers = slices.DeleteFunc(svc.Finalizers, func(f string) bool { return f == driver.StockFinalizer })
	svc.Status.LoadBalancer = corev1.LoadBalancerStatus{}
}

// removeMarks removes our own marks and leaves those that a stock service controller works with.
func removeMarks(svc *corev1.Service, product driver.Product) {
	svc.Finalizers = slices.DeleteFunc(svc.Finalizers, func(f string) bool { return f == product.Finalizer })
	meta.RemoveStatusCondition(&svc.Status.Conditions, ConditionSynced)
	meta.RemoveStatusCondition(&svc.Status.Conditions, ConditionMoving)
	meta.RemoveStatusCondition(&svc.Status.Conditions, driver.ConditionWritten)
	for _, label := range ownLabels {
		delete(svc.Labels, label)
	}
}

// changesOnlyRecord reports whether two versions of a Service differ in the Record alone. A pass writes that in its middle, before it
// creates a load balancer: the event would have the pass made anew, again and again while the cloud refuses.
func changesOnlyRecord(before, after *corev1.Service) bool {
	was, is := meta.FindStatusCondition(before.Status.Conditions, driver.ConditionWritten), meta.FindStatusCondition(after.Status.Conditions,
		driver.ConditionWritten)
	if equality.Semantic.DeepEqual(was, is) {
		return false
	}
	old, now := before.DeepCopy(), after.DeepCopy()
	for _, svc := range []*corev1.Service{old, now} {
		svc.ResourceVersion, svc.ManagedFields = "", nil
		if meta.RemoveStatusCondition(&svc.Status.Conditions, driver.ConditionWritten); len(svc.Status.Conditions) == 0 {
			svc.Status.Conditions = nil
		}
	}
	return equality.Semantic.DeepEqual(old, now)
}

// storeFirstIntent records what the first pass over a Service is about to write, in the patch that adds the finalizer.
func storeFirstIntent(svc *corev1.Service, engine driver.Engine) {
	if _, ok := driver.RecordOn(svc); ok {
		return
	}
	params, _ := engine.Params(svc)
	if params.Invalid {
		return
	}
	if intent := engine.Intent(svc, params); !intent.IsEmpty() {
		intent.StoreChange()(svc)
	}
}
