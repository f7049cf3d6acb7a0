package provider

import (
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/doctor"
)

// TestDoctorFindsABroadKey: a key that may do more than the RAM policy of the features is no fault, but is reported.
func TestDoctorFindsABroadKey(t *testing.T) {
	t.Parallel()
	policy := func(features ...alicloud.Feature) []string {
		var allowed []string
		for _, action := range alicloud.ActionsOf(features...) {
			allowed = append(allowed, action.RAM())
		}
		return allowed
	}
	for name, test := range map[string]struct {
		allowed []string // nothing: everything
		routes  bool
		want    []string // parts of the detail; none: nothing is found
	}{
		"the policy":     {allowed: policy(alicloud.Features...), routes: true},
		"everything":     {routes: true, want: []string{"slb:DescribeCACertificates", "vpc:DescribeVpcAttribute"}},
		"all of one":     {allowed: append(policy(alicloud.Features...), "vpc:*"), routes: true, want: []string{"vpc:DescribeVpcAttribute"}},
		"routes are off": {allowed: policy(alicloud.Features...), want: []string{"vpc:DescribeRouteEntryList"}},
	} {
		p := newPatient(t)
		if !test.routes {
			p.settings.ClusterCIDRs = nil
		}
		if !p.server.Permit(keys.AccessKeyID, test.allowed...) {
			t.Fatal("the emulator does not know the access key")
		}
		report := p.examine(t)
		i := slices.IndexFunc(report.Checks, func(c doctor.Check) bool { return c.Subject == "other actions" })
		if i < 0 || !report.Empty() {
			t.Fatalf("%s: the line is missing, or something is wrong:\n%s", name, report)
		}
		check := report.Checks[i]
		missing := slices.ContainsFunc(test.want, func(want string) bool { return !strings.Contains(check.Detail, want) })
		if missing || (check.Status == doctor.Optional) != (len(test.want) > 0) {
			t.Errorf("%s: %+v, want one that names %q", name, check, test.want)
		}
	}
}

// keyInConfigMap is a cluster with the access key in the ConfigMap of the cloud-config.
func keyInConfigMap(text string) []runtime.Object {
	view := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"}
	return []runtime.Object{
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "cloud-config"},
			Data: map[string]string{"cloud-config.conf": text}},
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "a"}, RoleRef: view, Subjects: []rbacv1.Subject{
			{Kind: rbacv1.UserKind, Name: "reader"}, {Kind: rbacv1.UserKind, Name: "admin"}, {Kind: rbacv1.UserKind, Name: "nobody"},
			{Kind: rbacv1.UserKind, Name: "system:reader"},
		}},
		&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "b"}, RoleRef: view, Subjects: []rbacv1.Subject{
			{Kind: rbacv1.ServiceAccountKind, Namespace: "team", Name: "reader"},
			{Kind: rbacv1.ServiceAccountKind, Namespace: "kube-system", Name: "reader"},
			{Kind: rbacv1.UserKind, Name: "reader"}, {Kind: rbacv1.GroupKind, Name: "readers"},
		}},
	}
}

// TestDoctorFindsReadersOfTheKey: an access key in a ConfigMap is a fault if somebody can read it who could not read it in a Secret.
func TestDoctorFindsReadersOfTheKey(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		objects   []runtime.Object
		forbidden string
		status    doctor.Status
		detail    string
	}{
		"no ConfigMap": {nil, "", doctor.OK, "no such ConfigMap"},
		"no key":       {keyInConfigMap(`{"Global":{"region":"cn-hangzhou"}}`), "", doctor.OK, "none"},
		"key": {keyInConfigMap(`{"Global":{"AccessKeySecret":"eA=="}}`), "", doctor.Wrong,
			"3 who may not read Secrets in kube-system can read it: group readers, serviceAccount team/reader, user reader"},
		"only admins": {keyInConfigMap(`{"Global":{"accessKeySecret":"eA=="}}`)[:1], "", doctor.OK, "only those who may read Secrets"},
		"forbidden":   {keyInConfigMap(`{"Global":{"accessKeySecret":"eA=="}}`), "configmaps", doctor.NotChecked, "not in the role"},
	} {
		p := newPatient(t)
		p.nodes = append(p.nodes, test.objects...)
		p.forbidden = test.forbidden
		p.reviews = func(review *authorizationv1.SubjectAccessReview) bool {
			who := review.Spec.User + strings.Join(review.Spec.Groups, "")
			return strings.Contains(who, "admin") || strings.Contains(who, "reader") && review.Spec.ResourceAttributes.Resource == "configmaps"
		}
		report := p.examine(t)
		i := slices.IndexFunc(report.Checks, func(c doctor.Check) bool { return strings.HasPrefix(c.Subject, "access key in ConfigMap") })
		if i < 0 {
			t.Fatalf("%s: the line is missing:\n%s", name, report)
		}
		if check := report.Checks[i]; check.Status != test.status || !strings.Contains(check.Detail, test.detail) ||
			(check.Status != doctor.OK) != (check.Fix != "") {
			t.Errorf("%s: %+v, want %s with %q", name, check, test.status, test.detail)
		}
	}
}

// answerReviews lets the fake API server answer SubjectAccessReviews.
func (p *patient) answerReviews(kube *clienttesting.Fake) {
	kube.PrependReactor("create", "subjectaccessreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
		review := action.(clienttesting.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview).DeepCopy()
		review.Status.Allowed = p.reviews != nil && p.reviews(review)
		return true, review, nil
	})
}
