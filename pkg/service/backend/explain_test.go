package backend_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/nodes"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/backend"
)

// TestWhyNotAgreesWithTheBackends: a node has a reason for being no backend if and only if it is none, whatever it is like and whatever the
// Service asks for. An explanation that has rules of its own would lie sooner or later.
func TestWhyNotAgreesWithTheBackends(t *testing.T) {
	t.Parallel()
	traits := []func(*corev1.Node){
		testkube.NodeLabel(corev1.LabelNodeExcludeBalancers, ""), testkube.NotReady(now.Add(-time.Hour)), testkube.Taint(nodes.TaintToBeDeleted),
		testkube.Cordoned,
		testkube.NodeLabel(nodes.LabelMaster, ""), testkube.NodeLabel("pool", "other"), testkube.ProviderID("cn-beijing.i-1"),
	}
	var all []*corev1.Node
	var items []string
	for mask := range 1 << len(traits) {
		node := testkube.Node(fmt.Sprintf("n%03d", mask), testkube.NodeLabel("pool", "web"))
		for i, change := range traits {
			if mask&(1<<i) != 0 {
				change(node)
			}
		}
		if all = append(all, node); mask%3 != 0 {
			items = append(items, fmt.Sprintf("10.244.%d.1@%s", mask, node.Name))
		}
	}
	set := backend.Nodes(all, testkube.InstanceID, now)
	for name, change := range map[string]func(*backend.Input){
		"all": func(*backend.Input) {}, "Local": local,
		"control plane": func(in *backend.Input) { in.ControlPlane = backend.ControlPlaneAlways },
		"annotations": func(in *backend.Input) {
			in.Params, _ = annotation.Parse(map[string]string{annotation.BackendLabel.Key(): "pool=web",
				annotation.RemoveUnscheduledBackend.Key(): "on"})
		},
		"subset": func(in *backend.Input) {
			in.Choice = backend.Choice{Some: true, Nodes: in.Ready()[:1]}
		},
		"Local without room": func(in *backend.Input) {
			in.Local, in.Choice.Without = true, sets.New(testkube.InstanceOf("n008"))
		},
	} {
		in := backend.Input{Facts: backend.Facts{Nodes: set, Slices: endpointsOf(items...)}, Family: "IPv4"}
		change(&in)
		resolver := backend.NewResolver(in)
		backends, _ := resolver.Backends(port80, "")
		has := sets.New[string]()
		for b := range backends.All {
			has.Insert(b.ID)
		}
		if has.Len() == 0 || has.Len() == len(all) {
			t.Errorf("%s: %d of %d nodes are backends: the test shows nothing", name, has.Len(), len(all))
		}
		whyNot := resolver.WhyNot()
		for node := range set.All {
			if reason := whyNot(node); (reason == "") != has.Has(node.InstanceID) {
				t.Errorf("%s: node %s: reason %q, and it is a backend: %t", name, node.Name, reason, has.Has(node.InstanceID))
			}
		}
	}
}
