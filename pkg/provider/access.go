package provider

import (
	"context"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
)

// Allowed asks the API server whether this process may do what is described. Everybody may ask that.
func Allowed(ctx context.Context, kube kubernetes.Interface, what authorizationv1.ResourceAttributes) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &what},
	}
	answer, err := kube.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("ask whether to %s %s is allowed: %w", what.Verb, what.Resource, err)
	}
	return answer.Status.Allowed, nil
}

// mayListEndpointSlices reports whether backends can be read from EndpointSlices. The vendor's published role has no right to
// them; the older Endpoints then serve, which end at 1,000 addresses per Service.
func mayListEndpointSlices(ctx context.Context, kube kubernetes.Interface) (bool, error) {
	const group, resource = "discovery.k8s.io", "endpointslices"
	for _, verb := range []string{"list", "watch"} {
		allowed, err := Allowed(ctx, kube, authorizationv1.ResourceAttributes{Verb: verb, Group: group, Resource: resource})
		if err != nil {
			return false, err
		}
		if !allowed {
			klog.FromContext(ctx).Info("Backends of load balancers are read from Endpoints: the role may not read EndpointSlices, "+
				"and Endpoints hold at most 1,000 addresses of a Service", "verb", verb)
			return false, nil
		}
	}
	return true, nil
}
