package provider

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/emulatortest"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb"
)

// serveServices wires the provider as it is and runs the controller of Services until the returned function is called.
func serveServices(t *testing.T, server *emulatortest.Cloud, kube kubernetes.Interface, settings Settings) (stop func()) {
	t.Helper()
	return serveServicesOver(t, steadyClient(t, server), kube, settings)
}

func serveServicesOver(t *testing.T, client *alicloud.Client, kube kubernetes.Interface, settings Settings) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	config := keys
	config.TypeAnnotation = true // without the annotation, nothing changes
	c := New(config, Environment{})
	c.Configure(settings)
	c.client, c.place, c.clusterID = client, place{vpcID: emulatortest.VPC}, "c1"
	c.kube, c.ctx, c.endpointSlices = kube, ctx, true
	factory := informers.NewSharedInformerFactory(kube, 0)
	c.SetInformers(factory)
	controller, err := c.ServiceController()
	testkit.Check(t, err)
	factory.Start(ctx.Done())
	running := &sync.WaitGroup{}
	running.Go(func() { controller.Run(ctx) })
	return func() {
		cancel()
		running.Wait()
		factory.Shutdown()
	}
}

// TestNLBThroughTheProvider: a Service of the class gets the name of an NLB from the provider as it is wired, is left alone without NLB,
// also when it is deleted, and goes with its NLB once that is served again.
func TestNLBThroughTheProvider(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := emulatortest.New(t, emulator.Options{Settle: time.Second})
		client := steadyClient(t, server)
		server.Put(testkube.InstanceOf("n1"), "{}")
		zones := testkube.Annotation("service.beta.kubernetes.io/alibaba-cloud-loadbalancer-zone-maps", "cn-hangzhou-a:vsw-a,cn-hangzhou-b:vsw-b")
		kube := testkube.NewClientset(testkube.Node("n1"), testkube.Service("web", testkube.TCP(80), testkube.Class(nlb.Class), zones))
		services := kube.CoreV1().Services(testkube.Namespace)
		get := func() *corev1.Service {
			t.Helper()
			return testkit.Must(services.Get(t.Context(), "web", metav1.GetOptions{}))(t)
		}

		stop := serveServices(t, server, kube, Settings{})
		time.Sleep(2 * time.Minute)
		stop()
		balancers := testkit.Must(client.ListNLBs(t.Context(), alicloud.NLBQuery{}))(t)
		if len(balancers) != 1 || len(get().Status.LoadBalancer.Ingress) != 1 ||
			get().Status.LoadBalancer.Ingress[0].Hostname != balancers[0].DNSName {
			t.Fatalf("NLBs %+v, Service %+v", balancers, get())
		}

		before := server.Last()
		stop = serveServices(t, server, kube, Settings{WithoutNLB: true})
		now, svc := metav1.Now(), get()
		svc.DeletionTimestamp = &now
		testkit.Must(services.Update(t.Context(), svc, metav1.UpdateOptions{}))(t)
		time.Sleep(time.Hour)
		stop()
		if calls := server.Count(before) - server.Count(before, "ListProductQuotas"); calls != 0 || len(get().Finalizers) != 1 {
			t.Errorf("%d calls without NLB, finalizers %v", calls, get().Finalizers)
		}

		stop = serveServices(t, server, kube, Settings{})
		time.Sleep(5 * time.Minute)
		stop()
		if left := testkit.Must(client.ListNLBs(t.Context(), alicloud.NLBQuery{}))(t); len(left) != 0 || len(get().Finalizers) != 0 {
			t.Errorf("left are NLBs %+v and finalizers %v", left, get().Finalizers)
		}
	})
}
