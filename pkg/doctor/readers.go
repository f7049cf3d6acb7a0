package doctor

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// The objects that deploy/cloud-config.sh makes, in kube-system.
const (
	cloudConfigName = "cloud-config"
	keySubject      = "access key in ConfigMap " + metav1.NamespaceSystem + "/" + cloudConfigName
)

// KeyReaders checks who can read an access key in the ConfigMap of the cloud-config who could not read it in a Secret. It needs the rights
// of an administrator.
func KeyReaders(ctx context.Context, kube kubernetes.Interface) Check {
	check := Check{Area: AreaCluster, Subject: keySubject, Status: OK}
	configMap, err := kube.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, cloudConfigName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		check.Detail = "there is no such ConfigMap"
		return check
	case err != nil:
		return notChecked(check, err)
	case !holdsKey(configMap):
		check.Detail = "none"
		return check
	}
	subjects, err := subjectsOf(ctx, kube)
	if err != nil {
		return notChecked(check, err)
	}
	var readers []string
	for _, subject := range subjects {
		reads, err := readsOnlyConfigMaps(ctx, kube, subject)
		if err != nil {
			return notChecked(check, err)
		}
		if reads {
			readers = append(readers,
				strings.ToLower(subject.Kind[:1])+subject.Kind[1:]+" "+strings.TrimPrefix(subject.Namespace+"/"+subject.Name, "/"))
		}
	}
	check.Detail = "only those who may read Secrets in kube-system can read it"
	if len(readers) > 0 {
		check.Status, check.Detail = Wrong, fmt.Sprintf("%d who may not read Secrets in kube-system can read it: %s", len(readers), some(readers))
		check.Fix = "run deploy/cloud-config.sh --secret, set cloudConfig.secretName of the chart, delete the ConfigMap, and then replace the key"
	}
	return check
}

func notChecked(check Check, err error) Check {
	check.Status, check.Detail = NotChecked, err.Error()
	check.Fix = "to check this, run doctor with the kubeconfig of an administrator"
	return check
}

// holdsKey reports whether a cloud-config in the ConfigMap has an access key. The names of its fields are not case-sensitive.
func holdsKey(configMap *corev1.ConfigMap) bool {
	for _, text := range configMap.Data {
		if strings.Contains(strings.ToLower(text), "accesskeysecret") {
			return true
		}
	}
	return false
}

// subjectsOf returns everyone to whom RBAC grants something in kube-system, in order and each once. The components of the control plane and
// those in kube-system are left out: they belong to the administrators.
func subjectsOf(ctx context.Context, kube kubernetes.Interface) ([]rbacv1.Subject, error) {
	cluster, err := kube.RbacV1().ClusterRoleBindings().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list the ClusterRoleBindings: %w", err)
	}
	local, err := kube.RbacV1().RoleBindings(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list the RoleBindings in kube-system: %w", err)
	}
	var all []rbacv1.Subject
	for i := range cluster.Items {
		all = append(all, cluster.Items[i].Subjects...)
	}
	for i := range local.Items {
		all = append(all, local.Items[i].Subjects...)
	}
	all = slices.DeleteFunc(all, func(s rbacv1.Subject) bool {
		return s.Kind == rbacv1.ServiceAccountKind && s.Namespace == metav1.NamespaceSystem ||
			s.Kind == rbacv1.UserKind && strings.HasPrefix(s.Name, "system:") || s.Kind == rbacv1.GroupKind && s.Name == "system:nodes"
	})
	slices.SortFunc(all, func(a, b rbacv1.Subject) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return slices.Compact(all), nil
}

// readsOnlyConfigMaps reports whether the subject can read the cloud-config in a ConfigMap, and could not in a Secret.
func readsOnlyConfigMaps(ctx context.Context, kube kubernetes.Interface, subject rbacv1.Subject) (bool, error) {
	reads, err := mayGet(ctx, kube, subject, "configmaps")
	if err != nil || !reads {
		return false, err
	}
	secrets, err := mayGet(ctx, kube, subject, "secrets")
	return !secrets, err
}

func mayGet(ctx context.Context, kube kubernetes.Interface, subject rbacv1.Subject, resource string) (bool, error) {
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: metav1.NamespaceSystem, Verb: "get", Resource: resource,
			Name: cloudConfigName},
	}}
	switch subject.Kind {
	case rbacv1.GroupKind:
		review.Spec.Groups = []string{subject.Name}
	case rbacv1.ServiceAccountKind:
		review.Spec.User = "system:serviceaccount:" + subject.Namespace + ":" + subject.Name
		review.Spec.Groups = []string{"system:authenticated", "system:serviceaccounts", "system:serviceaccounts:" + subject.Namespace}
	default:
		review.Spec.User, review.Spec.Groups = subject.Name, []string{"system:authenticated"}
	}
	answer, err := kube.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("ask who may get %s: %w", resource, err)
	}
	return answer.Status.Allowed, nil
}

// shown is how many names a line lists.
const shown = 5

func some(names []string) string {
	if len(names) <= shown {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:shown], ", "), len(names)-shown)
}
