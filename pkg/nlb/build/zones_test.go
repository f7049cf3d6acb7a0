package build_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/build"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/backend"
)

// TestDiscoverZones: two zones by the number of nodes that may be backends, in each the vSwitch with nodes and the most free addresses.
func TestDiscoverZones(t *testing.T) {
	t.Parallel()
	vSwitches := []alicloud.VSwitch{
		{ID: "vsw-1", ZoneID: "z-a", CIDRBlock: "10.1.0.0/24", AvailableIPs: 20},
		{ID: "vsw-2", ZoneID: "z-a", CIDRBlock: "10.1.1.0/24", IPv6CIDRBlock: "2001:db8:1::/64", AvailableIPs: 10},
		{ID: "vsw-3", ZoneID: "z-a", CIDRBlock: "10.1.2.0/24", AvailableIPs: 200},
		{ID: "vsw-4", ZoneID: "z-b", CIDRBlock: "10.2.0.0/24", IPv6CIDRBlock: "2001:db8:2::/64", AvailableIPs: 20},
		{ID: "vsw-5", ZoneID: "z-c", CIDRBlock: "10.3.0.0/24", AvailableIPs: 20},
		{ID: "vsw-6", ZoneID: "z-d", CIDRBlock: "10.4.0.0/24"},
	}
	excluded := testkube.NodeLabel(corev1.LabelNodeExcludeBalancers, "true")
	front := testkube.NodeLabel("role", "front")
	for name, test := range map[string]struct {
		nodes []*corev1.Node
		dual  bool
		label string
		want  string
	}{
		"the most nodes":          {nodes: at("10.3.0.1", "10.2.0.1", "10.2.0.2", "10.1.0.1", "10.3.0.2"), want: "z-b:vsw-4,z-c:vsw-5"},
		"as many: by name":        {nodes: at("10.3.0.1", "10.2.0.1", "10.1.0.1"), want: "z-a:vsw-1,z-b:vsw-4"},
		"the vSwitch with nodes":  {nodes: at("10.1.1.1", "10.2.0.1"), want: "z-a:vsw-2,z-b:vsw-4"},
		"the most free addresses": {nodes: at("10.1.1.1", "10.1.0.1", "10.2.0.1"), want: "z-a:vsw-1,z-b:vsw-4"},
		"IPv6":                    {nodes: at("10.1.1.1", "10.1.0.1", "2001:db8:2::1", "10.3.0.1"), dual: true, want: "z-a:vsw-2,z-b:vsw-4"},
		"nodes of the labels": {
			nodes: append(at("10.3.0.1", "10.3.0.2"), withAddress("x", "10.1.0.1", front), withAddress("y", "10.2.0.2", front)),
			label: "role=front", want: "z-a:vsw-1,z-b:vsw-4",
		},
		"no free address":              {nodes: at("10.4.0.1", "10.4.0.2", "10.2.0.1")},
		"one zone":                     {nodes: at("10.1.0.1", "10.1.1.1")},
		"nodes elsewhere":              {nodes: at("192.168.0.1", "192.168.0.2", "")},
		"nodes that may be no backend": {nodes: append(at("10.1.0.1"), withAddress("x", "10.2.0.1", excluded))},
	} {
		svc := testkube.Service("web", testkube.TCP(80))
		svc.Annotations = map[string]string{annotation.BackendLabel.Key(): test.label}
		if test.dual {
			svc.Annotations[annotation.IPVersion.Key()] = annotation.DualStackNLB
		}
		params, _ := annotation.OfNLB(svc)
		in := build.Input{Facts: backend.Facts{Nodes: backend.Nodes(test.nodes, testkube.InstanceID, now)}, Service: svc, Params: params}
		if err := in.DiscoverZones(
			vSwitches,
		); build.ZonesText(in.Zones) != test.want && test.want != "" ||
			(err == nil) == (test.want == "") {
			t.Errorf("%s: %s, %v, want %q", name, build.ZonesText(in.Zones), err, test.want)
		}
	}
}

func at(addresses ...string) []*corev1.Node {
	var nodes []*corev1.Node
	for _, address := range addresses {
		nodes = append(nodes, withAddress("n"+address, address))
	}
	return nodes
}

func withAddress(name, address string, change ...func(*corev1.Node)) *corev1.Node {
	node := testkube.Node(name, change...)
	if address != "" {
		node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address}}
	}
	return node
}
