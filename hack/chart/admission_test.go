package chart

import (
	"context"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

const (
	annotationPrefix = "service.beta.kubernetes.io/alibaba-cloud-"
	olderPrefix      = "service.beta.kubernetes.io/alicloud-"
	// refused is a value that no annotation accepts but those of anything.
	refused = "= no such value"
)

// anything are the annotations that accept every text.
var anything = []string{"loadbalancer-preserve-lb-on-delete", "loadbalancer-tunnel-type", "loadbalancer-type"}

// annotationRow is a row of the reference page: the name, and the cell with the example. That has the annotations that one needs
// beside it, too.
var (
	annotationRow  = regexp.MustCompile("(?m)^\\| `(loadbalancer-[a-z0-9-]+)` \\|.*\\| ([^|]+) \\|$")
	exampleSetting = regexp.MustCompile("`([a-z0-9-]+): (\"[^`]*\")`")
)

// TestAdmissionPolicy asks a real API server: every example of the reference page is admitted, every bad value refused with a message
// that names key, value and what is accepted.
func TestAdmissionPolicy(t *testing.T) {
	t.Parallel()
	s := newSandbox(t, helm4)
	s.must("helm install " + release + s.emulated())
	s.until("the policy is in force", func(context.Context) string {
		if s.apply(service(annotationPrefix+"loadbalancer-spec", refused)) == nil {
			return "a bad value is admitted"
		}
		return ""
	})
	s.judges("annotations.md", "alibabacloud.com/clb")
	s.judges("annotations-nlb.md", "alibabacloud.com/nlb")
	s.leavesOthersAlone()
	s.letsOldValuesStand()
}

// judges asks about every annotation of a reference page, on a Service of a class.
func (s *sandbox) judges(file, class string) {
	s.Helper()
	page, err := os.ReadFile(root + "/docs/reference/" + file)
	if err != nil {
		s.Fatal(err)
	}
	rows := annotationRow.FindAllStringSubmatch(string(page), -1)
	if len(rows) < 50 {
		s.Fatalf("%s has %d rows", file, len(rows))
	}
	for _, row := range rows {
		name := row[1]
		example := exampleOf(s.T, row[2])
		if err := s.apply(ofClass(class, example...)); err != nil || !slices.Contains(example, annotationPrefix+name) {
			s.Errorf("%s: the example %q is refused or lacks it: %v", name, example, err)
		}
		for _, prefix := range []string{annotationPrefix, olderPrefix} {
			err := s.apply(ofClass(class, prefix+name, refused))
			if slices.Contains(anything, name) {
				if err != nil {
					s.Errorf("%s: %v", name, err)
				}
				continue
			}
			if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), prefix+name+`: "`+refused+`" is not accepted; accepted: `) {
				s.Errorf("%s: %v, want a refusal that names key, value and what is accepted", name, err)
			}
		}
	}
}

// ofClass is [service] with a class.
func ofClass(class string, annotations ...string) *corev1.Service {
	svc := service(annotations...)
	svc.Spec.LoadBalancerClass = &class
	return svc
}

// exampleOf returns the annotations of a cell, each followed by its value.
func exampleOf(t *testing.T, cell string) []string {
	t.Helper()
	var annotations []string
	for _, setting := range exampleSetting.FindAllStringSubmatch(cell, -1) {
		value, err := strconv.Unquote(setting[2])
		if err != nil {
			t.Fatalf("%s: %v", cell, err)
		}
		annotations = append(annotations, annotationPrefix+setting[1], value)
	}
	return annotations
}

func service(annotations ...string) *corev1.Service {
	svc := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "judged", Annotations: map[string]string{}},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, Ports: []corev1.ServicePort{{Port: 80}}},
	}
	for i := 0; i < len(annotations); i += 2 {
		svc.Annotations[annotations[i]] = annotations[i+1]
	}
	return svc
}

// apply asks whether a Service would be admitted.
func (s *sandbox) apply(svc *corev1.Service) error {
	s.Helper()
	_, err := s.client.CoreV1().Services("default").Create(s.Context(), svc, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}

// leavesOthersAlone: what the manager does not read is not judged.
func (s *sandbox) leavesOthersAlone() {
	s.Helper()
	bad := annotationPrefix + "loadbalancer-spec"
	clusterIP := service(bad, refused)
	clusterIP.Spec.Type = corev1.ServiceTypeClusterIP
	foreign := service(bad, refused)
	foreign.Spec.LoadBalancerClass = ptr.To("alibabacloud.com/nlb")
	ours := service(bad, refused)
	ours.Spec.LoadBalancerClass = ptr.To("alibabacloud.com/clb")
	for name, test := range map[string]struct {
		svc      *corev1.Service
		admitted bool
	}{
		"no load balancer":         {clusterIP, true},
		"another class":            {foreign, true},
		"our class":                {ours, false},
		"another by annotation":    {service(bad, refused, "service.beta.kubernetes.io/class", "other"), true},
		"tunnel":                   {service(bad, refused, annotationPrefix+"loadbalancer-tunnel-type", "t"), true},
		"older key does not count": {service(bad, "slb.s1.small", olderPrefix+"loadbalancer-spec", refused), true},
		"backends":                 {service("service.beta.kubernetes.io/backend-type", "pods"), false},
		"two at once":              {service(bad, "slb.s1.small", annotationPrefix+"loadbalancer-bandwidth", "0"), false},
		"annotations of others":    {service("example.com/a", refused), true},
	} {
		if err := s.apply(test.svc); (err == nil) != test.admitted {
			s.Errorf("%s: %v, want admitted %t", name, err, test.admitted)
		}
	}
}

// letsOldValuesStand: a bad value from before the policy keeps nobody from changing something else, nor from deleting the Service.
func (s *sandbox) letsOldValuesStand() {
	s.Helper()
	key := annotationPrefix + "loadbalancer-bandwidth"
	s.must("helm upgrade " + release + " --reuse-values --set admissionPolicy.enabled=false")
	services := s.client.CoreV1().Services("default")
	s.until("a bad value is admitted without policy", func(context.Context) string { return text(s.apply(service(key, "0"))) })
	old := service(key, "0")
	old.Name = "old"
	old.Finalizers = []string{"example.com/wait"}
	old, err := services.Create(s.Context(), old, metav1.CreateOptions{})
	if err != nil {
		s.Fatal(err)
	}
	s.must("helm upgrade " + release + " --reuse-values --set admissionPolicy.enabled=true")
	s.until("the policy is in force again", func(context.Context) string {
		if s.apply(service(key, "0")) == nil {
			return "a bad value is admitted"
		}
		return ""
	})
	old.Labels = map[string]string{"changed": "true"}
	if old, err = services.Update(s.Context(), old, metav1.UpdateOptions{}); err != nil {
		s.Fatalf("change of a label: %v", err)
	}
	worse := old.DeepCopy()
	worse.Annotations[key] = "-1"
	if _, err := services.Update(s.Context(), worse, metav1.UpdateOptions{}); err == nil {
		s.Error("a bad value could be changed for another")
	}
	if err := services.Delete(s.Context(), old.Name, metav1.DeleteOptions{}); err != nil {
		s.Fatal(err)
	}
	s.must("kubectl patch service " + old.Name + " --type merge --patch '{\"metadata\":{\"finalizers\":null}}'")
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
