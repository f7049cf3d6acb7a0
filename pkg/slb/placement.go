package slb

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/config"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/model"
)

// notReusable says what keeps a Service from using an existing CLB, "" for nothing.
func notReusable(lb *alicloud.LoadBalancer, svc *corev1.Service, params annotation.Params, config config.Config) string {
	if slices.Contains(config.APIServerAddresses, lb.Address) {
		return "is that of the API server (" + lb.Address + "): a mistake on it would cut off the whole cluster"
	}
	for _, key := range []string{mark.TagOwner, mark.TagCluster} {
		if value, ok := lb.Tag(key); ok {
			return fmt.Sprintf("was made by a controller (tag %s=%s) and serves something else", key, value)
		}
	}
	if lb.VPCID != "" && config.VPCID != "" && lb.VPCID != config.VPCID {
		return fmt.Sprintf("is in VPC %s, the nodes are in %s", lb.VPCID, config.VPCID)
	}
	return addressDiffers(lb, svc, params)
}

// addressDiffers says why the CLB cannot be the one whose address the status of the Service shows, "" if it can.
func addressDiffers(lb *alicloud.LoadBalancer, svc *corev1.Service, params annotation.Params) string {
	if params.Has(annotation.Hostname) || params.Has(annotation.ExternalIPType) {
		return "" // the status does not show the CLB's own address
	}
	if svc.Labels[service.LabelLoadBalancerID] == lb.ID {
		return "" // the Service is on it already, whatever its status showed before
	}
	for _, ingress := range svc.Status.LoadBalancer.Ingress {
		if ingress.IP != "" && ingress.IP != lb.Address {
			return fmt.Sprintf("has the address %s, the Service shows %s", lb.Address, ingress.IP)
		}
	}
	return ""
}

// placement reports an annotation id that the Service cannot follow.
func placement(actual *model.Model, params annotation.Params) []problem.Problem {
	asked := params.Get(annotation.LoadBalancerID)
	if actual == nil || asked == actual.LoadBalancer.ID || asked == "" && !actual.Reused {
		return nil
	}
	wish := "change to " + asked
	if asked == "" {
		wish = "be removed"
	}
	return []problem.Problem{problem.Newf(problem.ReasonImmutableAttribute, "%s cannot %s, because the Service would get another address; accepted: %s", annotation.LoadBalancerID, wish, acceptedID(actual))}
}

// acceptedID says what the annotation id may be on a Service that is on a CLB.
func acceptedID(actual *model.Model) string {
	if actual.Reused {
		return actual.LoadBalancer.ID + ", the CLB that the Service is on"
	}
	return "no " + string(annotation.LoadBalancerID) + ", because the Service has a CLB of its own, " + actual.LoadBalancer.ID
}
