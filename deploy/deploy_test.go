package deploy

import (
	"bytes"
	"io"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// manifests returns the objects of a file as YAML, by kind.
func manifests(t *testing.T, name string) map[string][][]byte {
	t.Helper()
	text, err := Files.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	byKind := map[string][][]byte{}
	documents := utilyaml.NewDocumentDecoder(io.NopCloser(bytes.NewReader(text)))
	buffer := make([]byte, len(text))
	for {
		n, err := documents.Read(buffer)
		if err == io.EOF {
			return byKind
		}
		if err != nil {
			t.Fatal(err)
		}
		document := slices.Clone(buffer[:n])
		var meta metav1.TypeMeta
		if err := yaml.Unmarshal(document, &meta); err != nil {
			t.Fatal(err)
		}
		if meta.Kind != "" { // the comment before the first object is a document too
			byKind[meta.Kind] = append(byKind[meta.Kind], document)
		}
	}
}

func clusterRole(t *testing.T, name string) rbacv1.ClusterRole {
	t.Helper()
	roles := manifests(t, name)["ClusterRole"]
	if len(roles) != 1 {
		t.Fatalf("%s has %d ClusterRoles, want 1", name, len(roles))
	}
	var role rbacv1.ClusterRole
	if err := yaml.UnmarshalStrict(roles[0], &role); err != nil {
		t.Fatal(err)
	}
	return role
}

func TestInitializerMayGetAndPatchNodesOnly(t *testing.T) {
	t.Parallel()
	want := []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get", "patch"}}}
	if diff := cmp.Diff(want, clusterRole(t, "provider-initor.yaml").Rules); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
}

func TestManagerHasNoBroadRight(t *testing.T) {
	t.Parallel()
	for _, rule := range clusterRole(t, "ccm.yaml").Rules {
		if slices.Equal(rule.Resources, []string{"pods"}) && !slices.ContainsFunc(rule.Verbs, func(verb string) bool {
			return verb != "get" && verb != "list" && verb != "watch"
		}) {
			continue // readiness gates are read by name; whether an address is that of a Pod of the namespace needs a list
		}
		if slices.Equal(rule.ResourceNames, []string{"cluster-info"}) {
			continue // kubeadm lets everybody read it
		}
		named := slices.Concat(rule.APIGroups, rule.Resources, rule.Verbs)
		for _, forbidden := range []string{"*", "secrets", "configmaps", "pods", "serviceaccounts", "impersonate", "escalate", "bind"} {
			if slices.Contains(named, forbidden) {
				t.Errorf("rule %+v grants %s", rule, forbidden)
			}
		}
	}
}

func TestManifestsHoldWhatIsInstalled(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][]string{
		"admission-policy.yaml":       {"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"},
		"admission-restrictions.yaml": {"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"},
		"ccm.yaml": {"ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "Deployment",
			"PodDisruptionBudget"},
		"example-service.yaml": {"Deployment", "Service"},
		"provider-initor.yaml": {"ServiceAccount", "ClusterRole", "ClusterRoleBinding", "BroadcastJob", "ValidatingAdmissionPolicy",
			"ValidatingAdmissionPolicyBinding"},
	} {
		kinds := manifests(t, name)
		for _, kind := range want {
			if len(kinds[kind]) == 0 {
				t.Errorf("%s has no %s", name, kind)
			}
			delete(kinds, kind)
		}
		for kind := range kinds {
			t.Errorf("%s has an unexpected %s", name, kind)
		}
	}
}
