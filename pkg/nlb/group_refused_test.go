package nlb

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
)

// names makes the Service web name an existing NLB, and keep the annotation of its group or not.
func (w *world) names(id string, keepsGroup bool) {
	w.t.Helper()
	changes := []func(*corev1.Service){with(annotation.LoadBalancerID, id), with(annotation.ForceOverrideListeners, "true")}
	if !keepsGroup {
		changes = append(changes, without(annotation.Group))
	}
	w.change("web", changes...)
}
