package build_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/backend"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/config"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/build"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/model"
)

// now is the time of a build.
var now = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// fixture is an input under construction.
type fixture struct {
	svc    *corev1.Service
	nodes  []*corev1.Node
	slices []*discoveryv1.EndpointSlice
	config config.Config
	enis   map[string]string
}

func newFixture(ports ...int32) *fixture {
	c := &fixture{
		svc: testkube.Service("web", testkube.TCP(ports...)), nodes: testkube.Nodes("a", "b"),
		config: config.Config{ClusterID: "c1", VSwitchIDs: []string{"vsw-a"}},
	}
	annotate(c.svc, annotation.AddressType, "intranet")
	return c
}

func (c *fixture) build() (*model.Model, []problem.Problem) {
	params, problems := annotation.Of(c.svc)
	model, more := build.Build(build.Input{
		Service: c.svc, Params: params, Config: c.config, ClusterID: c.config.ClusterID,
		Facts: backend.Facts{Nodes: backend.Nodes(c.nodes, testkube.InstanceID, now), Slices: c.slices, Interfaces: c.enis},
	})
	return model, append(problems, more...)
}

// wantBuilt builds a Service with one port, changed, and compares lines of the model.
func wantBuilt(t *testing.T, change func(*fixture), lines func(*model.Model) []string, want []string) {
	t.Helper()
	c := newFixture(80)
	change(c)
	model, _ := c.build()
	if diff := cmp.Diff(want, lines(model)); diff != "" {
		t.Errorf("model (-want +got):\n%s", diff)
	}
}

func annotate(svc *corev1.Service, suffix annotation.Suffix, value string) {
	svc.Annotations[suffix.Key()] = value
}

// silentFor makes a Node whose kubelet stopped reporting so long ago.
func silentFor(d time.Duration) func(*corev1.Node) { return testkube.Silent(now.Add(-d)) }

// backendLines shows the groups of a model for people.
func backendLines(model *model.Model) []string {
	var lines []string
	for _, group := range model.Groups {
		for _, server := range group.Backends {
			lines = append(lines, server.String())
		}
		for _, server := range group.Draining {
			lines = append(lines, "draining "+server.String())
		}
		if group.Doubt {
			lines = append(lines, fmt.Sprintf("doubt, gone %v", slices.Sorted(slices.Values(group.Gone.UnsortedList()))))
		}
		if len(group.Held) > 0 {
			lines = append(lines, fmt.Sprintf("held %v", slices.Sorted(maps.Keys(group.Held))))
		}
	}
	return lines
}

// listenerLines shows the listeners of a model for people.
func listenerLines(model *model.Model) []string {
	var lines []string
	for _, listener := range model.Listeners {
		line := listener.ListenerKey.String()
		for _, name := range slices.Sorted(maps.Keys(listener.Attributes)) {
			line += fmt.Sprintf(" %s=%q", name, listener.Attributes[name])
		}
		lines = append(lines, strings.TrimSpace(line))
	}
	return lines
}

func reasons(problems []problem.Problem) []string {
	var all []string
	for _, problem := range problems {
		all = append(all, problem.Reason)
	}
	return all
}

// eni has the backends of a Service be pods.
func eni(svc *corev1.Service) { svc.Annotations[annotation.BackendType] = "eni" }

func ipv6Backends(svc *corev1.Service) {
	eni(svc)
	annotate(svc, annotation.IPVersion, "ipv6")
	annotate(svc, annotation.BackendIPVersion, "ipv6")
}

func goesAway(n *corev1.Node) { n.DeletionTimestamp = new(metav1.NewTime(time.Unix(0, 0))) }
