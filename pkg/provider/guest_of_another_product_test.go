package provider

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/emulatortest"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb"
)

// TestGuestOfAnotherProduct: a Service with a CLB names the NLB of a group by its ID, and asks for an NLB by an annotation that changes
// nothing where there is a CLB. The last Service of the group goes, and the NLB with it. The other Service keeps its CLB and its address,
// and gets nothing of the other product.
func TestGuestOfAnotherProduct(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := emulatortest.New(t, emulator.Options{Settle: time.Second})
		server.Put(testkube.InstanceOf("n1"), "{}")
		zones := testkube.Annotation(annotation.ZoneMaps.Key(), "cn-hangzhou-a:vsw-a,cn-hangzhou-b:vsw-b")
		kube := testkube.NewClientset(testkube.Node("n1"),
			testkube.Service("shop", testkube.TCP(81), testkube.Class(nlb.Class), zones, testkube.Annotation(annotation.Group.Key(), "edge")),
			testkube.Service("web", testkube.TCP(80)))
		services := kube.CoreV1().Services(testkube.Namespace)
		get := func(name string) *corev1.Service {
			return testkit.Must(services.Get(t.Context(), name, metav1.GetOptions{}))(t)
		}
		stop := serveServices(t, server, kube, Settings{})
		defer func() { stop() }()
		time.Sleep(2 * time.Minute)
		web, shop := get("web"), get("shop")
		shown := web.Status.LoadBalancer.Ingress
		web.Annotations = map[string]string{annotation.Type.Key(): nlb.Product.Type,
			annotation.LoadBalancerID.Key(): shop.Labels[driver.LabelLoadBalancerID]}
		testkit.Must(services.Update(t.Context(), web, metav1.UpdateOptions{}))(t)
		time.Sleep(2 * time.Minute)
		now := metav1.Now()
		shop.DeletionTimestamp = &now
		testkit.Must(services.Update(t.Context(), shop, metav1.UpdateOptions{}))(t)
		for range 60 {
			time.Sleep(time.Second)
			web = get("web")
			if !slices.Equal(web.Finalizers, []string{slb.Finalizer}) || len(shown) == 0 ||
				!slices.EqualFunc(web.Status.LoadBalancer.Ingress, shown, func(a, b corev1.LoadBalancerIngress) bool { return a.IP == b.IP }) {
				t.Fatalf("finalizers %v, shows %v, showed %v", web.Finalizers, web.Status.LoadBalancer.Ingress, shown)
			}
		}
		if held := get("shop").Finalizers; len(held) > 0 {
			t.Errorf("finalizers %v hold the Service of the group", held)
		}
	})
}
