package backend_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/nodes"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/backend"
)

// mayLeave reports which of the members of a group leave that the set does not have: instances, or addresses of pods.
func mayLeave(set backend.Set, members ...string) []string {
	wanted := map[string]bool{}
	for b := range set.All {
		wanted[b.ID], wanted[b.IP] = true, true
	}
	for _, b := range set.Draining {
		wanted[b.ID], wanted[b.IP] = true, true
	}
	return slices.DeleteFunc(members, func(member string) bool {
		return wanted[member] || set.Held.Has(member) || set.Doubt && !set.Gone.Has(member)
	})
}

// TestDoubtCoversWhatItIsAbout: what is not known of one endpoint keeps no other backend.
func TestDoubtCoversWhatItIsAbout(t *testing.T) {
	t.Parallel()
	virtual := testkube.Node("vk", testkube.NodeLabel(nodes.LabelType, nodes.TypeVirtualKubelet), testkube.ProviderID("other://x"))
	without := func(addresses ...string) func(*backend.Input) { // network interfaces of these addresses
		return func(in *backend.Input) {
			pods(in)
			for _, address := range addresses {
				delete(in.Interfaces, address)
			}
		}
	}
	unread := func(in *backend.Input) {
		without("10.9.0.2")(in)
		in.InterfacesUnread = true
	}
	onNodes := func(f func(*backend.Input)) func(*backend.Input) {
		return func(in *backend.Input) {
			f(in)
			in.Pods = false
		}
	}
	labeled := func(label string) func(*backend.Input) {
		return func(in *backend.Input) {
			in.Local = true
			in.Params, _ = annotation.Parse(map[string]string{annotation.BackendLabel.Key(): label})
		}
	}
	present := func(f func(*backend.Input)) func(*backend.Input) { // in a group that has a backend of the port
		return func(in *backend.Input) {
			f(in)
			in.Choice.Room = backend.RoomOf(0, false, 1, slices.Values([]backend.Entry{{Kind: backend.KindInstance, ID: "i-a", Ours: true}}))
		}
	}
	named := port80
	named.TargetPort, named.Name = intstr.FromString("http"), "renamed"
	abc := testkube.Nodes("a", "b", "c")
	for name, test := range map[string]struct {
		given
		members []string
		leave   []string
	}{
		"an address without network interface": {given{slices: endpointsOf("10.9.0.1@a", "10.9.0.2@a"), change: without("10.9.0.2")},
			[]string{"10.9.0.1", "10.9.0.2", "10.9.9.9"}, []string{"10.9.9.9"}},
		"network interfaces that cannot be read": {given{slices: endpointsOf("10.9.0.1@a", "10.9.0.2@a"), change: unread},
			[]string{"10.9.0.1", "10.9.0.2", "10.9.9.9"}, []string{"10.9.9.9"}},
		"no address has a network interface": {given{slices: endpointsOf("10.9.0.2@a"), change: without("10.9.0.2")}, []string{"10.9.0.2"}, nil},
		"a pod on a virtual node without network interface": {
			given{nodes: append(testkube.Nodes("a"), virtual), slices: endpointsOf("10.9.0.2@vk"), change: onNodes(without("10.9.0.2"))},
			[]string{"i-a", "i-gone", "10.9.0.2", "10.9.9.9"}, []string{"i-gone", "10.9.9.9"},
		},
		"pods without the named port": {given{slices: endpointsOf("10.9.0.1@a"), port: named, change: present(pods)},
			[]string{"10.9.0.1", "10.9.9.9"}, []string{"10.9.9.9"}},
		"pods without the named port, Local": {given{nodes: abc, slices: endpointsOf("10.9.0.1@a"), port: named, change: present(local)},
			[]string{"i-a", "i-b", "i-gone"}, []string{"i-b", "i-gone"}},
		"an endpoint on a node that is not known": {given{nodes: abc, slices: endpointsOf("10.9.0.1@a", "10.9.1.1@x"), change: local},
			[]string{"i-a", "i-b", "i-gone"}, []string{"i-b", "i-gone"}},
		"all endpoints on nodes that are not known": {given{nodes: abc, slices: endpointsOf("10.9.1.1@x"), change: local},
			[]string{"i-a", "i-b", "i-x"}, []string{"i-a", "i-b"}},
		"no node has the labels, Local": {given{nodes: abc, slices: endpointsOf("10.9.0.1@a"), change: labeled("pool=typo")},
			[]string{"i-a", "i-b", "i-gone"}, []string{"i-b", "i-gone"}},
		"no node with an endpoint has the labels, Local": {
			given{nodes: []*corev1.Node{testkube.Node("a"), testkube.Node("b", testkube.NodeLabel("pool", "x"))}, slices: endpointsOf("10.9.0.1@a"),
				change: labeled("pool=x")},
			[]string{"i-a", "i-b"}, []string{"i-b"},
		},
		"one node with an endpoint has the labels, Local": {
			given{nodes: []*corev1.Node{testkube.Node("a"), testkube.Node("b", testkube.NodeLabel("pool", "x"))},
				slices: endpointsOf("10.9.0.1@a", "10.9.0.2@b"), change: labeled("pool=x")},
			[]string{"i-a", "i-b"}, []string{"i-a"},
		},
		"a new port that no endpoint has yet": {given{slices: endpointsOf("10.9.0.1@a"), port: named, change: pods},
			[]string{"10.9.0.1", "10.9.9.9"}, []string{"10.9.9.9"}},
		"no endpoints": {given{nodes: abc, slices: endpointsOf(), change: local}, []string{"i-a"}, []string{"i-a"}},
	} {
		set, problems := test.resolve()
		if left := mayLeave(set, slices.Clone(test.members)...); !slices.Equal(left, test.leave) {
			t.Errorf("%s: of the members %v, %v leave, want %v", name, test.members, left, test.leave)
		}
		if silent := slices.Contains([]string{"no endpoints", "network interfaces that cannot be read", "a new port that no endpoint has yet"},
			name); silent != (len(problems) == 0) {
			t.Errorf("%s: %v is said", name, problems)
		}
	}
}

// TestOneAddressInSlicesThatDisagree: the more able endpoint counts, in whatever order the slices come.
func TestOneAddressInSlicesThatDisagree(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		one, other string
		want       string
	}{
		{"10.9.0.1@a", "?10.9.0.1@a", "i-a:30080 1"}, {"10.9.0.1@a", "!10.9.0.1@a", "i-a:30080 1"},
		{"!10.9.0.1@a", "?10.9.0.1@a", "draining i-a:30080 0"},
		{"10.9.0.1@a", "10.9.0.1@b", "i-b:30080 2"}, {"10.9.0.1@a", "10.9.0.1", "i-a:30080 1"},
	} {
		for _, order := range [][]string{{test.one, test.other}, {test.other, test.one}} {
			var all []*discoveryv1.EndpointSlice
			for _, item := range order {
				all = append(all, endpointsOf(item)...)
			}
			all = append(all, endpointsOf("10.9.0.9@b")...)
			set, _ := given{nodes: testkube.Nodes("a", "b"), slices: all, change: local}.resolve()
			if got := text(set); !slices.Contains(got, test.want) {
				t.Errorf("%v: %v, want %q among them", order, got, test.want)
			}
		}
	}
}

// TestTypeByNamesOfGroups: the names of groups say what the backends are, also while there are none.
func TestTypeByNamesOfGroups(t *testing.T) {
	t.Parallel()
	same := port80
	same.NodePort = same.TargetPort.IntVal
	for name, test := range map[string]struct {
		port        corev1.ServicePort
		groups      []string
		pods, known bool
	}{
		"none": {port80, nil, false, false}, "of a pod": {port80, []string{"8080"}, true, true},
		"of nodes": {port80, []string{"30080"}, false, true},
		"of both":  {port80, []string{"8080", "30080"}, true, false}, "of one number": {same, []string{"8080"}, false, false},
	} {
		pods, known := backend.NamedForPods([]corev1.ServicePort{test.port}, func(text string) bool { return slices.Contains(test.groups, text) })
		if known != test.known || known && pods != test.pods {
			t.Errorf("%s: %v, %v, want %v, %v", name, pods, known, test.pods, test.known)
		}
	}
}
