package initor

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/node"
)

var testID = node.ProviderID{Region: "cn-hangzhou", InstanceID: "i-1"}

func TestNeedsPatch(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		have         string
		want         bool
		wantConflict bool
	}{
		{have: "", want: true},
		{have: "cn-hangzhou.i-1"},
		{have: "alicloud://cn-hangzhou.i-1"},
		{have: "alicloud:///cn-hangzhou-h/i-1"},
		{have: "cn-hangzhou.i-2", wantConflict: true},
		{have: "cn-beijing.i-1", wantConflict: true},
		{have: "k3s://node-1", wantConflict: true},
		{have: "i-1", wantConflict: true},
	} {
		got, err := needsPatch(nodeWithID(test.have), testID)
		if got != test.want || errors.Is(err, ErrConflict) != test.wantConflict || (err != nil) != test.wantConflict {
			t.Errorf("needsPatch with %q = %t, %v, want %t and a conflict %t", test.have, got, err, test.want, test.wantConflict)
		}
	}
}

func TestConflictErrorSaysWhatToDo(t *testing.T) {
	t.Parallel()
	_, err := needsPatch(nodeWithID("k3s://node-1"), testID)
	for _, part := range []string{"node-1", "spec.providerID", `"k3s://node-1"`, `"cn-hangzhou.i-1"`, "delete the Node"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q does not hold %q", err, part)
		}
	}
}

func TestPatch(t *testing.T) {
	t.Parallel()
	got, err := node.PatchOf(nodeWithID(""), nil, map[string]any{"providerID": testID.String()})
	want := `{"metadata":{"uid":"uid-1","resourceVersion":"7"},"spec":{"providerID":"cn-hangzhou.i-1"}}`
	if err != nil || string(got) != want {
		t.Errorf("PatchOf = %s, %v, want %s", got, err, want)
	}
}

func nodeWithID(id string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "node-1", UID: "uid-1", ResourceVersion: "7"},
		Spec:       corev1.NodeSpec{ProviderID: id},
	}
}
