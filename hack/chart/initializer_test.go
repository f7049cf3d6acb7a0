package chart

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestInitializerJobs installs the chart without OpenKruise: each node that is there gets a Job, whose pod really runs. (With
// OpenKruise: sandbox/e2e, `make e2e`.)
func TestInitializerJobs(t *testing.T) {
	t.Parallel()
	for name, pkg := range helms() {
		t.Run(name, func(t *testing.T) {
			s := newSandbox(t, pkg, "--on-premises", "1", "--bin-dir", filepath.Dir(program(t, "provider-initor")))
			s.must("kubectl create -f - <<<'{apiVersion: v1, kind: Node, metadata: {name: virtual, labels: {type: virtual-kubelet}}}'")
			values := s.emulated() + " --set initializer.enabled=true,initializer.driver=job"
			s.must("helm install " + release + values)
			s.until("four nodes are done", func(context.Context) string {
				status := s.shell("provider-initor status --driver job --name provider-initor")
				got := strings.Join(strings.Fields(status.stdout), " ")
				for _, want := range []string{"idc-1 - skipped", "node-1 cn-hangzhou.i-sandbox0001 set", "node-2 cn-hangzhou.i-sandbox0002 set",
					"node-3 cn-hangzhou.i-sandbox0003 set"} {
					if !strings.Contains(got, want) {
						return status.stdout + status.stderr
					}
				}
				return ""
			})
			first := s.jobs()
			s.must("helm upgrade " + release + values)
			if second := s.jobs(); len(first) != 4 || !slices.Equal(first, second) {
				t.Errorf("an upgrade without change turns the Jobs %v into %v", first, second)
			}
			s.must("helm upgrade " + release + values + ",initializer.image.tag=v9") // a Job cannot be changed
			if second := s.jobs(); len(second) != 4 || slices.Contains(second, first[0]) {
				t.Errorf("an upgrade to another image turns the Jobs %v into %v", first, second)
			}
			s.must("helm uninstall cloud-controller-manager --namespace kube-system")
			if left := s.jobs(); len(left) > 0 {
				t.Errorf("uninstalled, the Jobs %v are left", left)
			}
		})
	}
}

// jobs lists the names of the initializer's Jobs, in order.
func (s *sandbox) jobs() []string {
	s.Helper()
	list, err := s.client.BatchV1().Jobs(system).List(s.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=provider-initor"})
	if err != nil {
		s.Fatal(err)
	}
	var names []string
	for _, job := range list.Items {
		if job.DeletionTimestamp == nil {
			names = append(names, job.Name)
		}
	}
	slices.Sort(names)
	return names
}
