package audit

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/initor"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/node"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	isOne   = initor.Finding{ProviderID: node.ProviderID{Region: "cn-hangzhou", InstanceID: "i-1"}}
	notECS  = initor.Finding{Err: fmt.Errorf("%w: no such address", initor.ErrNotECS)}
	unclear = initor.Finding{Err: errors.New("two instances")}
)

func TestVerify(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		id      string
		region  string
		finding *initor.Finding
		want    Verdict
		reason  bool // whether one is expected
		bad     bool
	}{
		{id: "", want: VerdictMissing, bad: true},
		{id: "cn-hangzhou.i-1", want: VerdictOK},
		{id: "alicloud://cn-hangzhou.i-1", region: "cn-hangzhou", want: VerdictOK},
		{id: "cn-hangzhou.i-1", region: "cn-beijing", want: VerdictWrong, reason: true, bad: true},
		{id: "k3s://a", want: VerdictForeign, reason: true},
		{id: "i-1", want: VerdictWrong, reason: true, bad: true},

		{id: "", finding: &isOne, want: VerdictMissing, reason: true, bad: true},
		{id: "", finding: &notECS, want: VerdictNotECS, reason: true},
		{id: "", finding: &unclear, want: VerdictMissing, reason: true, bad: true},
		{id: "cn-hangzhou.i-1", finding: &isOne, want: VerdictOK},
		{id: "alicloud:///cn-hangzhou-h/i-1", finding: &isOne, want: VerdictOK},
		{id: "cn-hangzhou.i-2", finding: &isOne, want: VerdictWrong, reason: true, bad: true},
		{id: "cn-hangzhou.i-1", finding: &notECS, want: VerdictUnverified, reason: true},
		{id: "ack-hybrid://x", finding: &notECS, want: VerdictNotECS, reason: true},
		{id: "ack-hybrid://x", want: VerdictForeign, reason: true},
		{id: "cn-hangzhou.i-1", finding: &unclear, want: VerdictOK, reason: true},
		{id: "k3s://a", finding: &notECS, want: VerdictNotECS, reason: true},
		{id: "k3s://a", finding: &isOne, want: VerdictForeign, reason: true, bad: true},
		{id: "i-1", finding: &isOne, want: VerdictWrong, reason: true, bad: true},
		{id: "i-1", finding: &notECS, want: VerdictWrong, reason: true, bad: true},
	} {
		n := nodeWith("a", test.id)
		n.Labels = map[string]string{corev1.LabelTopologyRegion: test.region}
		var findings map[string]initor.Finding
		if test.finding != nil {
			findings = map[string]initor.Finding{"a": *test.finding}
		}
		got := Verify([]*corev1.Node{n}, findings)[0]
		if got.Verdict != test.want || (got.Reason != "") != test.reason || got.Bad() != test.bad {
			t.Errorf("%q in %q with %+v: %+v, want %s, a reason %t, bad %t", test.id, test.region, test.finding, got, test.want, test.reason,
				test.bad)
		}
	}
}

func TestVerifyFindsDoubles(t *testing.T) {
	t.Parallel()
	got := Verify([]*corev1.Node{
		nodeWith("c", "cn-hangzhou.i-2"), nodeWith("b", "alicloud://cn-hangzhou.i-1"), nodeWith("a", "cn-hangzhou.i-1"),
	}, nil)
	want := []NodeVerdict{
		{Node: "a", ProviderID: "cn-hangzhou.i-1", Verdict: VerdictWrong, Reason: "it is also the ID of b"},
		{Node: "b", ProviderID: "alicloud://cn-hangzhou.i-1", Verdict: VerdictWrong, Reason: "it is also the ID of a"},
		{Node: "c", ProviderID: "cn-hangzhou.i-2", Verdict: VerdictOK},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("verdicts (-want +got):\n%s", diff)
	}
}

// TestLegitimateNodesAreNotCalledWrong: what ECS does not show to this key may be right all the same.
func TestLegitimateNodesAreNotCalledWrong(t *testing.T) {
	t.Parallel()
	for name, n := range map[string]*corev1.Node{
		"another region or account": nodeWith("a", "cn-beijing.i-1"),
		"another cloud":             nodeWith("a", "ack-hybrid://cluster/node"),
		"another product":           nodeWith("a", "alicloud://cn-hangzhou.e-lingjun-1"),
		"excluded by a label": func() *corev1.Node {
			n := nodeWith("a", "cn-hangzhou.i-2")
			n.Labels = map[string]string{"service.beta.kubernetes.io/exclude-node": "true"}
			return n
		}(),
	} {
		for _, findings := range []map[string]initor.Finding{nil, {"a": notECS}} {
			if got := Verify([]*corev1.Node{n}, findings)[0]; got.Bad() || got.Instance != "" {
				t.Errorf("%s: %+v with findings %v", name, got, findings)
			}
		}
	}
}

func TestVerifyShowsWhoseADoubleIs(t *testing.T) {
	t.Parallel()
	nodes := []*corev1.Node{nodeWith("a", "cn-hangzhou.i-1"), nodeWith("b", "cn-hangzhou.i-1")}
	other := initor.Finding{ProviderID: node.ProviderID{Region: "cn-hangzhou", InstanceID: "i-2"}}
	got := Verify(nodes, map[string]initor.Finding{"a": isOne, "b": other})
	if got[0].Verdict != VerdictOK || got[1].Verdict != VerdictWrong {
		t.Errorf("verdicts are %+v, want a ok and b wrong", got)
	}
}

func nodeWith(name, id string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{ProviderID: id}}
}
