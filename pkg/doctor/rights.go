package doctor

import (
	"context"
	"fmt"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/rights"
)

// Rights asks the API server for each right whether this identity has it. Everybody may ask that.
func Rights(ctx context.Context, kube kubernetes.Interface, sets []rights.Set) []Check {
	var checks []Check
	for _, set := range sets {
		for _, right := range set.Rights {
			checks = append(checks, rightCheck(ctx, kube, set.Feature, right))
		}
	}
	return checks
}

func rightCheck(ctx context.Context, kube kubernetes.Interface, feature string, right rights.Right) Check {
	check := Check{Area: AreaCluster, Family: "rights at the API server",
		Subject: fmt.Sprintf("may %s %s", strings.Join(right.Verbs, ", "), right.Resource), Status: OK, Detail: "for " + feature}
	var missing []string
	for _, verb := range right.Verbs {
		allowed, err := ask(ctx, kube, verb, right)
		if err != nil {
			check.Status, check.Detail = NotChecked, err.Error()
			return check
		}
		if !allowed {
			missing = append(missing, verb)
		}
	}
	if len(missing) > 0 {
		check.Status, check.Detail = Wrong, fmt.Sprintf("may not %s; needed by %s for %s", strings.Join(missing, ", "), feature, right.Why)
		if right.Optional {
			check.Status = Optional
		}
		check.Fix = "apply the ClusterRole and the Role of the chart (deploy/ccm.yaml) and bind them to this identity"
	}
	return check
}

func ask(ctx context.Context, kube kubernetes.Interface, verb string, right rights.Right) (bool, error) {
	resource, subresource, _ := strings.Cut(right.Resource, "/")
	what := authorizationv1.ResourceAttributes{
		Verb: verb, Group: right.Group, Resource: resource, Subresource: subresource, Namespace: right.Namespace,
	}
	if len(right.Names) > 0 {
		what.Name = right.Names[0]
	}
	answer, err := kube.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &what},
	}, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("the API server does not say whether to %s %s is allowed: %w", verb, right.Resource, err)
	}
	return answer.Status.Allowed, nil
}
