package provider

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/doctor"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
)

// permissions checks the RAM actions. NLB is on by default and has an endpoint of its own: what it lacks is a fault only where a Service
// has an NLB, or is to have one, or where that cannot be known.
func (e *examination) permissions(ctx context.Context) {
	features, unused := e.features(), []alicloud.Feature{alicloud.FeatureQuotas}
	if e.readsQuotas() {
		features = append(features, alicloud.FeatureQuotas)
	}
	if !e.settings.WithoutNLB {
		lacking := doctor.Wrong
		if !e.needsNLB(ctx) {
			lacking, unused = doctor.Optional, append(unused, alicloud.FeatureNLB)
		}
		if e.reachesNLB(ctx, lacking) {
			features = append(features, alicloud.FeatureNLB)
		}
	}
	e.report.Add(doctor.Permissions(ctx, e.client, features, unused)...)
	e.report.Add(doctor.Beyond(ctx, e.client, slices.Concat(features, unused)))
}

// reachesNLB reports whether the endpoint of NLB answers.
func (e *examination) reachesNLB(ctx context.Context, lacking doctor.Status) bool {
	const subject = "NLB endpoint"
	if _, err := e.client.ListNLBs(ctx, alicloud.NLBQuery{IDs: []string{"nlb-doctor-none"}}); alicloud.IsAmbiguous(err) {
		e.add(doctor.AreaCloud, subject, lacking, "no answer: "+err.Error(),
			"correct --endpoints=nlb=…, NLB_ENDPOINT or Global.endpoints.nlb; if the region has no NLB, start the manager with --controllers=*,-nlb")
		return false
	}
	e.add(doctor.AreaCloud, subject, doctor.OK, "it answers", "")
	return true
}

// needsNLB reports whether a Service has an NLB or is to have one. It says so where the Services cannot be read.
func (e *examination) needsNLB(ctx context.Context) bool {
	if e.kube == nil {
		return true
	}
	services, err := e.kube.CoreV1().Services(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	return err != nil || slices.ContainsFunc(services.Items, func(svc corev1.Service) bool {
		return nlb.Product.AskedBy(e.classes(), &svc) || driver.HasFinalizer(&svc, nlb.Finalizer)
	})
}
