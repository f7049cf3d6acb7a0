package render

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	kruise "github.com/openkruise/kruise-api/apps/v1alpha1"
	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	corev1 "k8s.io/api/core/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// documents are the objects of a manifest, each as YAML.
func documents(t *testing.T, manifest string) []string {
	t.Helper()
	reader := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(manifest)))
	var found []string
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(document, []byte("\nkind: ")) {
			found = append(found, string(document))
		}
	}
}

// workload is a Pod, or what all kinds that make pods have in common.
type workload struct {
	Kind string
	Spec struct {
		corev1.PodSpec
		Template corev1.PodTemplateSpec
	}
}

// checkPods holds all pods of a manifest to what the "restricted" Pod Security Standard asks for beside the node's network, and to what
// quotas and limit ranges ask for. https://kubernetes.io/docs/concepts/security/pod-security-standards/
func checkPods(t *testing.T, what, manifest string) {
	t.Helper()
	for _, document := range documents(t, manifest) {
		var w workload
		if err := yaml.Unmarshal([]byte(document), &w); err != nil {
			continue // another kind, whose spec has another form
		}
		pod := w.Spec.Template.Spec
		if w.Kind == "Pod" {
			pod = w.Spec.PodSpec
		}
		if len(pod.Containers) == 0 {
			continue
		}
		if s := pod.SecurityContext; s == nil || s.RunAsNonRoot == nil || !*s.RunAsNonRoot || s.SeccompProfile == nil ||
			s.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
			t.Errorf("%s: the pods of the %s run with %+v", what, w.Kind, s)
		}
		if pod.ServiceAccountName == "cloud-controller-manager" && !inTheCloud(pod.Affinity) {
			t.Errorf("%s: the pods of the %s may run on machines on premises, which reach neither the endpoints of a VPC nor the metadata service",
				what, w.Kind)
		}
		for _, container := range pod.Containers {
			s := container.SecurityContext
			if s == nil || s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem || s.AllowPrivilegeEscalation == nil ||
				*s.AllowPrivilegeEscalation ||
				s.Capabilities == nil || len(s.Capabilities.Drop) != 1 || s.Capabilities.Drop[0] != "ALL" {
				t.Errorf("%s: container %s of the %s runs with %+v", what, container.Name, w.Kind, s)
			}
			if container.Resources.Requests.Cpu().IsZero() || container.Resources.Requests.Memory().IsZero() ||
				container.Resources.Limits.Memory().IsZero() {
				t.Errorf("%s: container %s of the %s has the resources %+v", what, container.Name, w.Kind, container.Resources)
			}
		}
	}
}

// inTheCloud reports whether each alternative of the node affinity leaves out nodes on premises.
func inTheCloud(affinity *corev1.Affinity) bool {
	if affinity == nil || affinity.NodeAffinity == nil || affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return false
	}
	terms := affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	return len(terms) > 0 && !slices.ContainsFunc(terms, func(term corev1.NodeSelectorTerm) bool {
		return !slices.ContainsFunc(term.MatchExpressions, func(e corev1.NodeSelectorRequirement) bool {
			return e.Key == "node.alibabacloud.com/on-premises" && e.Operator == corev1.NodeSelectorOpNotIn && slices.Contains(e.Values, "true")
		})
	})
}

// TestCustomResources decodes what Kubernetes' own schemas do not know with the types of those who define it.
func TestCustomResources(t *testing.T) {
	t.Parallel()
	sets := []string{"initializer.enabled=true", "metrics.serviceMonitor.enabled=true", "metrics.serviceMonitor.labels.release=prometheus",
		"serving.tlsSecretName=ccm-tls"}
	seen := 0
	for _, document := range documents(t, template(t, Options{Set: sets})) {
		var object any
		switch {
		case strings.Contains(document, "\nkind: BroadcastJob\n"):
			object = &kruise.BroadcastJob{}
		case strings.Contains(document, "\nkind: ServiceMonitor\n"):
			object = &monitoring.ServiceMonitor{}
		default:
			continue
		}
		seen++
		if err := yaml.UnmarshalStrict([]byte(document), object); err != nil {
			t.Errorf("%T: %v", object, err)
		}
	}
	if seen != 2 {
		t.Errorf("saw %d custom resources, want 2", seen)
	}
}

// TestTheDoctorRunsWhereTheManagerDoes: elsewhere its pod could not be scheduled, or would check another network.
func TestTheDoctorRunsWhereTheManagerDoes(t *testing.T) {
	t.Parallel()
	for _, setting := range []string{"placement", "daemon set", "one replica", "no budget"} {
		var doctor, manager corev1.PodSpec
		for _, document := range documents(t, template(t, Options{Set: Settings[setting]})) {
			var w workload
			if err := yaml.Unmarshal([]byte(document), &w); err != nil {
				continue // another kind, whose spec has another form
			}
			if w.Kind == "Pod" {
				doctor = w.Spec.PodSpec
			} else if len(w.Spec.Template.Spec.Containers) > 0 {
				manager = w.Spec.Template.Spec
			}
		}
		if doctor.Affinity == nil || manager.Affinity == nil {
			t.Fatalf("%s: the manifests lack the pod of the doctor or of the manager", setting)
		}
		place := func(spec corev1.PodSpec) []any {
			return []any{spec.NodeSelector, spec.Tolerations, spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution}
		}
		if diff := cmp.Diff(place(manager), place(doctor)); diff != "" {
			t.Errorf("%s: the doctor's pod runs elsewhere (-manager +doctor):\n%s", setting, diff)
		}
	}
}
