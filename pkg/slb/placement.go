package slb

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/model"
)

// addressDiffers says why the CLB cannot be the one whose address the status of the Service shows, "" if it can.
func addressDiffers(lb *alicloud.LoadBalancer, svc *corev1.Service, params annotation.Params) string {
	if params.Has(annotation.Hostname) || params.Has(annotation.ExternalIPType) {
		return "" // the status does not show the CLB's own address
	}
	if params.Has(annotation.Move) {
		return "" // another address is what the author wants
	}
	if svc.Labels[driver.LabelLoadBalancerID] == lb.ID {
		return "" // the Service is on it already, whatever its status showed before
	}
	for _, ingress := range svc.Status.LoadBalancer.Ingress {
		if ingress.IP != "" && ingress.IP != lb.Address {
			return fmt.Sprintf("has the address %s, the Service shows %s", lb.Address, ingress.IP)
		}
	}
	return ""
}

// reportPlacement reports an annotation id that the Service cannot follow.
func reportPlacement(actual *model.Model, params annotation.Params) []problem.Problem {
	asked := params.Get(annotation.LoadBalancerID)
	if actual == nil || asked == actual.LoadBalancer.ID || asked == "" && !actual.Reused {
		return nil
	}
	wish := "change to " + asked
	if asked == "" {
		wish = "be removed"
	}
	return []problem.Problem{problem.Newf(problem.ReasonImmutableAttribute,
		"%s cannot %s, because the Service would get another address; accepted: %s, or %s: %s to move", annotation.LoadBalancerID, wish,
		acceptedID(actual), annotation.Move, annotation.MoveAllow)}
}

// acceptedID says what the annotation id may be on a Service that is on a CLB.
func acceptedID(actual *model.Model) string {
	if actual.Reused {
		return actual.LoadBalancer.ID + ", the CLB that the Service is on"
	}
	return "no " + annotation.LoadBalancerID.Key() + ", because the Service has a CLB of its own, " + actual.LoadBalancer.ID
}
