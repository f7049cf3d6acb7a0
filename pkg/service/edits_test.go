package service

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
)

// labeled sets a label or an annotation that asks for nothing.
func labeled(value string) func(*corev1.Service) {
	return func(svc *corev1.Service) { svc.Labels["example.com/team"] = value }
}

func noted(value string) func(*corev1.Service) {
	return func(svc *corev1.Service) { svc.Annotations["example.com/touched"] = value }
}

// TestEditReadsFirst: an edit of the Service has its load balancer read before anything is planned, and nothing else does.
func TestEditReadsFirst(t *testing.T) {
	t.Parallel()
	asking := func(svc *corev1.Service) {
		svc.Annotations[annotation.Prefixes[0]+string(annotation.Scheduler)] = "wlc"
	}
	for _, test := range []struct {
		name string
		edit func(*corev1.Service)
		want []string
	}{
		{"the ports", setPort(81), []string{"read web", "write web"}},
		{"another field of the spec", testkube.LocalTraffic, []string{"read web"}},
		{"an annotation that asks for something", asking, []string{"read web"}},
		{"an annotation that is gone", func(svc *corev1.Service) {
			delete(svc.Annotations, annotation.Prefixes[0]+string(annotation.AddressType))
		}, []string{"read web"}},
		{"an annotation of the user", noted("now"), []string{"read web"}},
		{"a label", labeled("a"), []string{"read web"}},
		{"our label", func(svc *corev1.Service) { svc.Labels[driver.LabelLoadBalancerID] = "lb-9" }, nil},
		{"a finalizer", func(svc *corev1.Service) { svc.Finalizers = append(svc.Finalizers, "example.com/x") }, nil},
		{"the status", func(svc *corev1.Service) { svc.Status.LoadBalancer = corev1.LoadBalancerStatus{} }, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			clb := newProduct("clb")
			inFrame(t, []driver.Engine{clb}, func(t *testing.T, f *frame) {
				f.put(testService("web", testkube.Annotation(annotation.Prefixes[0]+string(annotation.AddressType), "intranet")))
				time.Sleep(noteInterval)
				clb.since()
				f.change("web", test.edit)
				if calls := clb.since(); !slices.Equal(calls, test.want) {
					t.Errorf("calls %v, want %v", calls, test.want)
				}
			})
		})
	}
}

// TestEndpointsAndNodesReadNothing: the events that come all the time cost no reads.
func TestEndpointsAndNodesReadNothing(t *testing.T) {
	t.Parallel()
	clb := newProduct("clb")
	inFrame(t, []driver.Engine{clb}, func(t *testing.T, f *frame) {
		f.put(testService("web"))
		clb.since()
		_, err := f.kube.DiscoveryV1().EndpointSlices(testkube.Namespace).Create(t.Context(),
			testkube.EndpointSlice("web", testkube.Port(80, corev1.ProtocolTCP), "10.9.0.1"), metav1.CreateOptions{})
		testkit.Check(t, err)
		_, err = f.kube.CoreV1().Nodes().Create(t.Context(), testkube.Node("a"), metav1.CreateOptions{})
		testkit.Check(t, err)
		time.Sleep(5 * time.Second)
		if calls := clb.since(); len(calls) != 0 {
			t.Errorf("calls %v, want none", calls)
		}
	})
}

// TestNotesAreReadForOnceAMinute: a program that writes a label again and again does not have the load balancer read each time, and the
// last change is not forgotten.
func TestNotesAreReadForOnceAMinute(t *testing.T) {
	t.Parallel()
	clb := newProduct("clb")
	inFrame(t, []driver.Engine{clb}, func(t *testing.T, f *frame) {
		f.put(testService("web"))
		time.Sleep(noteInterval)
		clb.since()
		for _, value := range []string{"a", "b", "c", "d", "e", "f"} {
			f.change("web", labeled(value))
			time.Sleep(noteInterval / 5)
		}
		if calls := clb.since(); !slices.Equal(calls, []string{"read web", "read web"}) {
			t.Errorf("calls %v for changes over little more than a minute, want two reads", calls)
		}
		time.Sleep(noteInterval)
		if calls := clb.since(); len(calls) > 1 {
			t.Errorf("calls %v in the minute after, want at most one read", calls)
		}
		f.change("web", labeled("g"))
		f.change("web", labeled("h"))
		clb.since()
		time.Sleep(noteInterval)
		if calls := clb.since(); !slices.Equal(calls, []string{"read web"}) {
			t.Errorf("calls %v after the last change, want one read", calls)
		}
	})
}
