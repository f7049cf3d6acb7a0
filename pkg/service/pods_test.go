package service

import (
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/sources"
)

// TestPodsWakeServices: a Service has a pass when an address of one of its Pods changes, and not when anything else does.
func TestPodsWakeServices(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		pod := func(name, address string) *corev1.Pod {
			return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "a"}, Spec: corev1.PodSpec{NodeName: "n"},
				Status: corev1.PodStatus{PodIPs: []corev1.PodIP{{IP: address}}}}
		}
		kube := testkube.NewClientset(pod("web-1", "10.0.0.1"))
		var woken []string
		pods := sources.NewPods(t.Context(), kube)
		pods.Wake = func(service types.NamespacedName) { woken = append(woken, service.String()) }
		ask := func(service, name string) bool {
			nodes, known := pods.PodsIn(t.Context(), "a").NodesOfPods(types.NamespacedName{Namespace: "a", Name: service},
				[]sources.PodAddress{{Name: name, Address: netip.MustParseAddr("10.0.0.1")}})
			return known && nodes[0] == "n"
		}
		if !ask("web", "web-1") || ask("shop", "shop-1") {
			t.Error("web-1 has the address, and shop-1 does not exist")
		}
		change := func(f func() error) []string {
			woken = nil
			if err := f(); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			return slices.Sorted(slices.Values(woken))
		}
		client := kube.CoreV1().Pods("a")
		for _, step := range []struct {
			name   string
			change func() error
			want   []string
		}{
			{"a label", func() error {
				labeled := pod("web-1", "10.0.0.1")
				labeled.Labels = map[string]string{"a": "b"}
				_, err := client.Update(t.Context(), labeled, metav1.UpdateOptions{})
				return err
			}, nil},
			{"a pod that no Service names", func() error {
				_, err := client.Create(t.Context(), pod("other-1", "10.0.0.3"), metav1.CreateOptions{})
				return err
			}, nil},
			{"a pod that a Service waits for", func() error {
				_, err := client.Create(t.Context(), pod("shop-1", "10.0.0.2"), metav1.CreateOptions{})
				return err
			}, []string{"a/shop"}},
			{"another address", func() error {
				_, err := client.Update(t.Context(), pod("web-1", "10.0.0.9"), metav1.UpdateOptions{})
				return err
			}, []string{"a/web"}},
			{"a pod that goes", func() error { return client.Delete(t.Context(), "web-1", metav1.DeleteOptions{}) }, []string{"a/web"}},
		} {
			if got := change(step.change); !slices.Equal(got, step.want) {
				t.Errorf("%s: woken %v, want %v", step.name, got, step.want)
			}
		}
		pods.ForgetService(types.NamespacedName{Namespace: "a", Name: "shop"})
		if got := change(func() error { return client.Delete(t.Context(), "shop-1", metav1.DeleteOptions{}) }); len(got) != 0 {
			t.Errorf("after the Service went: woken %v", got)
		}
	})
}
