package service

import (
	"context"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/record"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
)

// frame is a controller with products over a fake API server, in the time of a synctest bubble.
type frame struct {
	t          *testing.T
	kube       *fake.Clientset
	factory    informers.SharedInformerFactory
	recorder   *record.FakeRecorder
	controller *Controller
	stop       func()
	// with changes the options of the next reconciler; it may be nil.
	with func(*Options)
	*Reconciler
}

// noNetwork is a VPC without network interfaces.
type noNetwork struct{}

func (noNetwork) DescribeNetworkInterfaces(context.Context, alicloud.NetworkInterfaceQuery) ([]alicloud.NetworkInterface, error) {
	return nil, nil
}

func (noNetwork) DescribeVPCBlocks(context.Context, string) ([]netip.Prefix, error) { return nil, nil }

// inFrame runs a test with a frame whose controller runs.
func inFrame(t *testing.T, engines []driver.Engine, test func(*testing.T, *frame)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f := newFrame(t, engines)
		f.start()
		test(t, f)
		f.stop()
	})
}

// start has the controller run until stop.
func (f *frame) start() {
	f.t.Helper()
	controller, err := NewController(f.opts, f.Reconciler)
	testkit.Check(f.t, err)
	f.controller = controller
	ctx, cancel := context.WithCancel(f.t.Context())
	done := make(chan struct{})
	f.factory.Start(ctx.Done())
	go func() {
		defer close(done)
		controller.Run(ctx)
	}()
	f.stop = func() {
		cancel()
		<-done
		f.factory.Shutdown()
	}
	time.Sleep(time.Second) // the controller waits for its caches
}

// again starts a program that knows nothing of the one before it, which was stopped.
func (f *frame) again() {
	f.t.Helper()
	f.open(f.opts.Engines)
	f.start()
}

// newFrame returns a frame without a controller, whose informers have not been started.
func newFrame(t *testing.T, engines []driver.Engine) *frame {
	t.Helper()
	f := &frame{t: t, kube: testkube.NewClientset(), recorder: record.NewFakeRecorder(100)}
	f.open(engines)
	return f
}

// open makes the reconciler and its informers.
func (f *frame) open(engines []driver.Engine) {
	f.factory = informers.NewSharedInformerFactory(f.kube, 0)
	opts := Options{
		Engines: engines, Network: noNetwork{}, Client: f.kube, Recorder: f.recorder, Workers: 3,
		Services: f.factory.Core().V1().Services(), Nodes: f.factory.Core().V1().Nodes(),
		EndpointSlices: f.factory.Discovery().V1().EndpointSlices(),
		InstanceID:     func(*corev1.Node) (string, error) { return "", nil },
	}
	if f.with != nil {
		f.with(&opts)
	}
	f.Reconciler = NewReconciler(opts)
}

func testService(name string, change ...func(*corev1.Service)) *corev1.Service {
	return testkube.Service(name, append([]func(*corev1.Service){testkube.TCP(80)}, change...)...)
}

// sharing has a Service use a load balancer that others may use, too.
func sharing(id string) func(*corev1.Service) {
	return testkube.Annotation(annotation.Prefixes[0]+string(annotation.LoadBalancerID), id)
}

func (f *frame) put(svc *corev1.Service) {
	f.t.Helper()
	_, err := f.kube.CoreV1().Services(svc.Namespace).Create(f.t.Context(), svc, metav1.CreateOptions{})
	testkit.Check(f.t, err)
	f.rest()
}

func (f *frame) get(name string) *corev1.Service {
	f.t.Helper()
	svc, err := f.kube.CoreV1().Services(testkube.Namespace).Get(f.t.Context(), name, metav1.GetOptions{})
	testkit.Check(f.t, err)
	return svc
}

func (f *frame) change(name string, change func(*corev1.Service)) {
	f.t.Helper()
	svc := f.get(name)
	change(svc)
	_, err := f.kube.CoreV1().Services(testkube.Namespace).Update(f.t.Context(), svc, metav1.UpdateOptions{})
	testkit.Check(f.t, err)
	f.rest()
}

// rest lets everything happen that needs no more than a moment.
func (f *frame) rest() {
	synctest.Wait()
	time.Sleep(10 * time.Millisecond)
	synctest.Wait()
}

func (f *frame) events() []string { return testkube.Drain(f.recorder) }

// withReason returns the events with a reason.
func withReason(events []string, reason string) []string {
	var found []string
	for _, event := range events {
		if strings.Contains(event, " "+reason+" ") {
			found = append(found, event)
		}
	}
	return found
}
