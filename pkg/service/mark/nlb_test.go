package mark

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

// TestNLBMarks: the forms are those of the official CCM, so that either program can take over what the other made.
func TestNLBMarks(t *testing.T) {
	t.Parallel()
	owner := Owner{Service: types.NamespacedName{Namespace: "ns", Name: "web"}, ClusterID: "c1"}
	if got := owner.NLBMark("80", "TCPSSL"); got != "k8s.80.TCPSSL.web.ns.c1" {
		t.Error(got)
	}
	if name, description := owner.NLBSecurityGroup("0f5e8a1c-7d"); name != "k8s-nlb-a0f5e8a1c7d" || description != "k8s.ns.web.c1" {
		t.Error(name, description)
	}
	for text, want := range map[string][2]bool{ // ours, another's
		"k8s.80.TCP.web.ns.c1": {true, false}, "k8s.80_90.UDP.web.ns.c1": {true, false}, "k8s.80.TCP.web.ns.c2": {false, true},
		"k8s.80.TCP.other.ns.c1": {false, true},
		"k8s.80.TCP.web.ns":      {false, false}, "k8s/80/web/ns/c1": {false, false}, "": {false, false}, "k8s.80.TCP.web.ns.c.1": {false, false},
	} {
		if got := [2]bool{owner.OwnsNLB(text), owner.OwnedNLBByOther(text)}; got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
	if CheckNLBCluster("c1") != nil || CheckNLBCluster("c.1") == nil {
		t.Error("a cluster ID with a dot must be refused, and no other")
	}
	owner.ClusterID = strings.Repeat("c", 120)
	long, other := owner.NLBGroupName("30080", "TCP"), owner.NLBGroupName("30081", "TCP")
	if len(long) != maxGroupName || long == other || long != owner.NLBGroupName("30080", "TCP") {
		t.Errorf("%q, %q", long, other)
	}
}
