package initor

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
)

func TestLookup(t *testing.T) {
	t.Parallel()
	url := startCloud(t, emulator.InstanceSpec{})
	nodes := []*corev1.Node{
		nodeAt("one", "10.1.0.11"), nodeAt("two", "10.1.0.11", "10.1.0.12"), nodeAt("elsewhere", "192.168.0.1"), nodeAt("nowhere"),
	}
	got, err := ecsSource(t, url, "emulator", "vpc-emulator").Lookup(t.Context(), nodes)
	if err != nil {
		t.Fatal(err)
	}
	if found := got["one"]; found.Err != nil || found.ProviderID != testID {
		t.Errorf("one is %+v, want %v", found, testID)
	}
	if found := got["two"]; found.Err == nil || errors.Is(found.Err, ErrNotECS) {
		t.Errorf("two is %+v, want it unclear", found)
	}
	if found := got["elsewhere"]; !errors.Is(found.Err, ErrNotECS) {
		t.Errorf("elsewhere is %+v, want %v", found, ErrNotECS)
	}
	if found := got["nowhere"]; found.Err == nil || errors.Is(found.Err, ErrNotECS) {
		t.Errorf("nowhere is %+v, want it unclear", found)
	}
}

// TestLookupByID: a node that no instance of the VPC has the address of may be an instance of another one.
func TestLookupByID(t *testing.T) {
	t.Parallel()
	url := startCloud(t, emulator.InstanceSpec{})
	withID := func(n *corev1.Node, id string) *corev1.Node { n.Spec.ProviderID = id; return n }
	got, err := ecsSource(t, url, "emulator", "vpc-emulator").Lookup(t.Context(), []*corev1.Node{
		withID(nodeAt("other-vpc", "192.168.0.1"), testID.Prefixed()), withID(nodeAt("not-shown", "192.168.0.2"), "cn-hangzhou.i-none"),
		withID(nodeAt("other-region", "192.168.0.3"), "cn-beijing.i-1"),
	})
	if err != nil {
		t.Fatal(err)
	}
	if found := got["other-vpc"]; found.Err != nil || found.ProviderID != testID {
		t.Errorf("the instance of another VPC is %+v, want %v", found, testID)
	}
	for _, name := range []string{"not-shown", "other-region"} {
		if found := got[name]; !errors.Is(found.Err, ErrNotECS) {
			t.Errorf("%s is %+v, want %v", name, found, ErrNotECS)
		}
	}
}

func TestLookupThatSeesNothingSaysNothing(t *testing.T) {
	t.Parallel()
	url := startCloud(t, emulator.InstanceSpec{})
	for _, key := range []string{"blind", "wrong"} {
		got, err := ecsSource(t, url, key, "vpc-emulator").Lookup(t.Context(), []*corev1.Node{nodeAt("one", "10.1.0.11")})
		if err == nil || errors.Is(err, ErrNotECS) {
			t.Errorf("with the key %q: %v, %v, want an error that denies nothing", key, got, err)
		}
	}
}

func nodeAt(name string, addresses ...string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, address := range addresses {
		n.Status.Addresses = append(n.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: address})
	}
	return n
}
