package node

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	cloudprovider "k8s.io/cloud-provider"
	cloudproviderapi "k8s.io/cloud-provider/api"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

func TestInstanceMetadata(t *testing.T) {
	t.Parallel()
	a := newAccount(t, emulator.Options{})
	instance, err := a.PutInstance("i-1", emulator.InstanceSpec{Type: "ecs.g7.large", Tags: map[string]string{tagNodePoolID: "np-1"}})
	if err != nil {
		t.Fatal(err)
	}
	want := &cloudprovider.InstanceMetadata{
		ProviderID: "cn-hangzhou.i-1", InstanceType: "ecs.g7.large", Zone: "cn-hangzhou-a", Region: testRegion,
		NodeAddresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: instance.PrivateIP}},
	}
	prefixed := *want
	prefixed.ProviderID = "alicloud://cn-hangzhou.i-1"
	for name, test := range map[string]struct {
		node     *corev1.Node
		prefixed bool
		want     *cloudprovider.InstanceMetadata
	}{
		"provider ID there":                {node: nodeOf(instance, tainted), want: want},
		"prefixed provider ID there":       {node: nodeOf(instance, tainted, withProviderID("alicloud://cn-hangzhou.i-1")), want: &prefixed},
		"found by address":                 {node: nodeOf(instance, tainted, withProviderID("")), want: want},
		"found by address, prefixed":       {node: nodeOf(instance, tainted, withProviderID("")), prefixed: true, want: &prefixed},
		"found by the kubelet's --node-ip": {node: nodeOf(instance, withProviderID(""), providedIP(instance.PrivateIP), noAddress), want: want},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, Options{API: a.Client, PrefixedProviderIDs: test.prefixed})
			c.add(test.node)
			got, err := c.InstanceMetadata(t.Context(), test.node)
			if err != nil {
				t.Fatal(err)
			}
			if pool := got.AdditionalLabels[LabelNodePoolID]; pool != "np-1" {
				t.Errorf("label %s = %q, want np-1", LabelNodePoolID, pool)
			}
			got.AdditionalLabels = nil
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("metadata (-want +got):\n%s", diff)
			}
		})
	}
}

func providedIP(address string) func(*corev1.Node) {
	return func(node *corev1.Node) { node.Annotations[cloudproviderapi.AnnotationAlphaProvidedIPAddr] = address }
}

func noAddress(node *corev1.Node) { node.Status.Addresses = nil }

// TestForeignNodes: the stock controller skips nil for a tainted node and crashes on it for others.
func TestForeignNodes(t *testing.T) {
	t.Parallel()
	a := newAccount(t, emulator.Options{})
	c := newCluster(t, Options{API: a.Client})
	instance := a.put(1)[0]
	for name, change := range map[string]func(*corev1.Node){
		"other cloud":        withProviderID("k3s://worker-1"),
		"hybrid":             withProviderID("ack-hybrid://cn-hangzhou.i-0"),
		"other region":       withProviderID("cn-beijing.i-0"),
		"container instance": withProviderID("cn-hangzhou.eci-1"),
		"virtual kubelet":    withLabel("type", "virtual-kubelet"),
		"lingjun":            withLabel("alibabacloud.com/lingjun-worker", "true"),
		"opted out":          withLabel("service.alibabacloud.com/exclude-node", ""),
		"opted out, legacy":  withLabel("service.beta.kubernetes.io/exclude-node", "true"),
	} {
		if got, err := c.InstanceMetadata(t.Context(), nodeOf(instance, change, tainted)); got != nil || err != nil {
			t.Errorf("%s, tainted: metadata = %+v, %v, want nil", name, got, err)
		}
		if got, err := c.InstanceMetadata(t.Context(), nodeOf(instance, change)); err != nil || got == nil || len(got.NodeAddresses) != 0 {
			t.Errorf("%s, initialized: metadata = %+v, %v, want one without addresses", name, got, err)
		}
		if exists, err := c.InstanceExists(t.Context(), nodeOf(instance, change)); !exists || err != nil {
			t.Errorf("%s: exists = %v, %v, want true", name, exists, err)
		}
		if shutdown, err := c.InstanceShutdown(t.Context(), nodeOf(instance, change)); shutdown || err != nil {
			t.Errorf("%s: shutdown = %v, %v, want false", name, shutdown, err)
		}
	}
	if n := a.Count(0, "DescribeInstances"); n != 0 {
		t.Errorf("ECS was asked %d times about nodes that are none of ours", n)
	}
}

func TestUnknownInstances(t *testing.T) {
	t.Parallel()
	a := newAccount(t, emulator.Options{})
	c := newCluster(t, Options{API: a.Client})
	for name, test := range map[string]struct {
		node   *corev1.Node
		reason string
	}{
		"no such instance": {node: nodeOf(emulator.Instance{ID: "i-none", PrivateIP: "10.1.0.99"}), reason: reasonInstanceNotFound},
		"no such address": {node: nodeOf(emulator.Instance{ID: "i-a", PrivateIP: "10.1.0.98"}, withProviderID("")),
			reason: reasonInstanceAmbiguous},
		"malformed provider": {node: nodeOf(emulator.Instance{ID: "i-b"}, withProviderID("worker-1")), reason: reasonProviderIDInvalid},
		"no address":         {node: nodeOf(emulator.Instance{ID: "i-c"}, withProviderID(""), noAddress), reason: reasonInstanceNotFound},
	} {
		for range 2 { // the event comes once
			if got, err := c.InstanceMetadata(t.Context(), test.node); err == nil {
				t.Errorf("%s: metadata = %+v, want an error", name, got)
			}
		}
		if diff := cmp.Diff([]string{test.reason}, c.eventReasons()); diff != "" {
			t.Errorf("%s: events (-want +got):\n%s", name, diff)
		}
	}
}

// twins answers every question with two instances of the same address, as two VPCs or a moved address may show.
type twins struct{}

func (twins) DescribeInstances(context.Context, alicloud.InstanceQuery) ([]alicloud.Instance, error) {
	return []alicloud.Instance{{ID: "i-1", PrivateIPs: []string{"10.1.0.9"}}, {ID: "i-2", PrivateIPs: []string{"10.1.0.9"}}}, nil
}

func TestAmbiguousAddress(t *testing.T) {
	t.Parallel()
	c := newCluster(t, Options{API: twins{}})
	node := nodeOf(emulator.Instance{ID: "i-x", PrivateIP: "10.1.0.9"}, withProviderID(""), tainted)
	if got, err := c.InstanceMetadata(t.Context(), node); !errors.Is(err, ErrProviderIDEmpty) {
		t.Errorf("metadata = %+v, %v, want an error and no guess", got, err)
	}
	if diff := cmp.Diff([]string{reasonInstanceAmbiguous}, c.eventReasons()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestLabels(t *testing.T) {
	t.Parallel()
	got := labelsOf(alicloud.Instance{ChargeType: "PostPaid", SpotStrategy: "NoSpot",
		Tags: map[string]string{tagNodePoolID: "not a label value"}})
	if diff := cmp.Diff(map[string]string{LabelChargeType: "PostPaid", LabelSpotStrategy: "NoSpot"}, got); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
}

// TestBurst: the nodes of a cluster that starts are read together, whoever asks for which first.
func TestBurst(t *testing.T) {
	t.Parallel()
	for _, empty := range []bool{false, true} {
		t.Run(fmt.Sprintf("provider ID empty %v", empty), func(t *testing.T) {
			t.Parallel()
			// In a bubble, so that all ask at the same time, however busy the machine is.
			synctest.Test(t, func(t *testing.T) { playBurst(t, empty) })
		})
	}
}

func playBurst(t *testing.T, empty bool) {
	t.Helper()
	a := newAccount(t, emulator.Options{})
	c := newCluster(t, Options{API: a.Client})
	var nodes []*corev1.Node
	for _, instance := range a.put(250) {
		node := nodeOf(instance, tainted)
		if empty {
			node.Spec.ProviderID = ""
		}
		nodes = append(nodes, node)
	}
	c.add(nodes...)
	var waiting sync.WaitGroup
	for _, node := range nodes {
		waiting.Go(func() {
			if got, err := c.InstanceMetadata(t.Context(), node); err != nil || got.InstanceType == "" {
				t.Errorf("metadata of %s = %+v, %v", node.Name, got, err)
			}
		})
	}
	waiting.Wait()
	if n := a.Count(0, "DescribeInstances"); n != 3 {
		t.Errorf("250 nodes took %d calls, want 3", n)
	}
}

// TestAddressOfAnotherNode: a kubelet that reports the address of another node does not get its provider ID.
func TestAddressOfAnotherNode(t *testing.T) {
	t.Parallel()
	a := newAccount(t, emulator.Options{})
	c := newCluster(t, Options{API: a.Client})
	instance := a.put(1)[0]
	owner := nodeOf(instance, isReady)
	twin := nodeOf(instance, withProviderID(""), tainted, func(node *corev1.Node) { node.Name, node.UID = "twin", "twin" })
	c.add(owner, twin)
	if got, err := c.InstanceMetadata(t.Context(), twin); !errors.Is(err, ErrProviderIDEmpty) {
		t.Errorf("metadata of the twin = %+v, %v, want an error", got, err)
	}
	if events := c.emitted(); len(events) != 1 || !strings.Contains(events[0], owner.Name) {
		t.Errorf("events = %q, want one that names %s", events, owner.Name)
	}
	if got, err := c.InstanceMetadata(t.Context(), owner); err != nil || got.ProviderID != owner.Spec.ProviderID {
		t.Errorf("metadata of the owner = %+v, %v", got, err)
	}
}

// TestTwinHasAnEvent: of two Nodes with one provider ID the younger has an event that names the older, which has none.
func TestTwinHasAnEvent(t *testing.T) {
	t.Parallel()
	a := newAccount(t, emulator.Options{})
	c := newCluster(t, Options{API: a.Client})
	instance := a.put(1)[0]
	now := time.Now()
	owner := nodeOf(instance, isReady, func(node *corev1.Node) { node.CreationTimestamp = metav1.NewTime(now.Add(-time.Hour)) })
	twin := nodeOf(instance, isReady, func(node *corev1.Node) {
		node.Name, node.UID, node.CreationTimestamp = "a-twin", "twin", metav1.NewTime(now)
	})
	c.add(owner, twin)
	for range 2 {
		for _, node := range []*corev1.Node{owner, twin} {
			if _, err := c.InstanceMetadata(t.Context(), node); err != nil {
				t.Fatal(err)
			}
		}
	}
	if events := c.emitted(); len(events) != 1 || !strings.Contains(events[0], "InstanceAmbiguous") ||
		!strings.Contains(events[0], "belongs to node "+owner.Name) {
		t.Errorf("events = %q, want one on the twin that names %s", events, owner.Name)
	}
}
