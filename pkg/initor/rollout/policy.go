package rollout

import (
	"fmt"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
)

const kindPolicy = "ValidatingAdmissionPolicy"

// ownNode compares the Node with the one that the token of the pod names. The API server writes that name into tokens of pods since
// Kubernetes 1.30,
// https://kubernetes.io/docs/reference/access-authn-authz/service-accounts-admin/#schema-for-service-account-private-claims.
const ownNode = `object.metadata.name in request.userInfo.?extra[?'authentication.kubernetes.io/node-name'].orValue([])`

// policyObjects let the pods only fill in an empty provider ID, and only on their own node. RBAC cannot express either, and the token of
// the pods is on every node.
func policyObjects(c Config) []runtime.Object {
	policy := &admissionv1.ValidatingAdmissionPolicy{
		TypeMeta:   metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: kindPolicy},
		ObjectMeta: metav1.ObjectMeta{Name: c.Name, Labels: labelsOf(c)},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: new(admissionv1.Fail),
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.OperationAll},
					Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"nodes", "nodes/*"}},
				},
			}}},
			MatchConditions: []admissionv1.MatchCondition{{
				Name: "provider-initor", Expression: fmt.Sprintf("request.userInfo.username == 'system:serviceaccount:%s:%s'", c.Namespace, c.Name),
			}},
			Validations: []admissionv1.Validation{
				{Reason: new(metav1.StatusReasonForbidden), Message: "provider-initor may only update nodes",
					Expression: "request.operation == 'UPDATE'"},
				onUpdate("provider-initor may only update the node that its pod runs on", ownNode),
				// The API server lets nobody change a provider ID that is set.
				onUpdate("provider-initor may only set spec.providerID", keeps("spec", "providerID")),
				// Those are the fields that the API server itself changes.
				onUpdate("provider-initor may not change labels, annotations or other metadata",
					keeps("metadata", "generation", "managedFields", "resourceVersion")),
			},
		},
	}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: kindPolicy + "Binding"},
		ObjectMeta: metav1.ObjectMeta{Name: c.Name, Labels: labelsOf(c)},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: c.Name,
			ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny}},
	}
	return []runtime.Object{policy, binding}
}

func onUpdate(message, expression string) admissionv1.Validation {
	return admissionv1.Validation{Reason: new(metav1.StatusReasonForbidden), Message: message,
		Expression: "request.operation != 'UPDATE' || " + expression}
}

// keeps is true if no field of a part of the Node changes but the given ones.
func keeps(part string, but ...string) string {
	changing := "['" + strings.Join(but, "', '") + "']"
	return fmt.Sprintf("object.%[1]s.all(f, f in %[2]s || f in oldObject.%[1]s && object.%[1]s[f] == oldObject.%[1]s[f]) && oldObject.%[1]s.all(f, f in %[2]s || f in object.%[1]s)",
		part, changing)
}

// knows reports whether the API server knows a kind.
func knows(api discovery.DiscoveryInterface, version, kind string) (bool, error) {
	list, err := api.ServerResourcesForGroupVersion(version)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("ask the API server for the resources of %s: %w", version, err)
	}
	for _, known := range list.APIResources {
		if known.Kind == kind {
			return true, nil
		}
	}
	return false, nil
}
