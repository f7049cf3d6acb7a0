package cluster

import (
	"context"
	"fmt"

	admission "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// windowsTaint is on Nodes of instances that stand for Windows.
const windowsTaint = "os=windows:NoSchedule"

// labelWindows lets Nodes with the taint of Windows have its label: a kubelet says with each update of its Node what system it was built
// for, and here that is always Linux.
func labelWindows(ctx context.Context, client kubernetes.Interface) error {
	const name = "windows-nodes"
	fail := admission.Fail
	policy := &admission.MutatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admission.MutatingAdmissionPolicySpec{
			FailurePolicy:      &fail,
			ReinvocationPolicy: admission.NeverReinvocationPolicy,
			MatchConstraints: &admission.MatchResources{ResourceRules: []admission.NamedRuleWithOperations{{
				RuleWithOperations: admission.RuleWithOperations{
					Operations: []admission.OperationType{admission.Create, admission.Update},
					Rule:       admission.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"nodes", "nodes/status"}},
				},
			}}},
			MatchConditions: []admission.MatchCondition{{
				Name:       "windows",
				Expression: `has(object.spec.taints) && object.spec.taints.exists(t, t.key == "os" && has(t.value) && t.value == "windows")`,
			}},
			Mutations: []admission.Mutation{{
				PatchType: admission.PatchTypeApplyConfiguration,
				ApplyConfiguration: &admission.ApplyConfiguration{Expression: fmt.Sprintf(
					`Object{metadata: Object.metadata{labels: {%q: "windows", "beta.kubernetes.io/os": "windows"}}}`, corev1.LabelOSStable)},
			}},
		},
	}
	binding := &admission.MutatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: admission.MutatingAdmissionPolicyBindingSpec{PolicyName: name},
	}
	api := client.AdmissionregistrationV1()
	if _, err := api.MutatingAdmissionPolicies().Create(ctx, policy, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("let Nodes be labeled as those of Windows: %w", err)
	}
	if _, err := api.MutatingAdmissionPolicyBindings().Create(ctx, binding, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("let Nodes be labeled as those of Windows: %w", err)
	}
	return nil
}
