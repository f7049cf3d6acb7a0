package slb

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
)

// lateTags answers searches by tag as long as tags are not indexed: with no load balancer.
type lateTags struct{ next http.RoundTripper }

func (l lateTags) RoundTrip(request *http.Request) (*http.Response, error) {
	answer, err := l.next.RoundTrip(request)
	query := request.URL.Query()
	if err != nil || query.Get("Action") != "DescribeLoadBalancers" || !strings.Contains(request.URL.RawQuery, "Tag") {
		return answer, err
	}
	if err := answer.Body.Close(); err != nil {
		return nil, err
	}
	empty := `{"RequestId":"1","TotalCount":0,"PageNumber":1,"PageSize":100,"LoadBalancers":{"LoadBalancer":[]}}`
	answer.Body, answer.ContentLength = io.NopCloser(strings.NewReader(empty)), int64(len(empty))
	answer.Header.Del("Content-Length")
	return answer, nil
}

// TestEmptyTagSearchIsNotGone: while the Service's label names a CLB that carries the owner tag, a search by tag that finds nothing
// neither creates a second one nor releases the Service.
func TestEmptyTagSearchIsNotGone(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		change func(*corev1.Service)
		left   int
	}{
		{"wanted, with finalizer", func(*corev1.Service) {}, 1},
		{"wanted, without finalizer", func(svc *corev1.Service) { svc.Finalizers = nil }, 1},
		{"deleted", deleteService, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := settled(t, testService("web", 80))
			w.change("web", func(svc *corev1.Service) { annotate(svc, annotation.Name, "shop") })
			w.mustPass("web")
			w.restart()
			w.transport.next = lateTags{w.transport.next}
			w.change("web", test.change)
			w.mustPass("web")
			w.transport.next = w.emulator.Transport()
			if got := len(w.lbs()); got != test.left {
				t.Errorf("%d CLBs, want %d", got, test.left)
			}
		})
	}
}

// TestAddressShowsTheCLB: while the search by tag lags and the Service has lost its label, a CLB with a name of its own is found by the
// address that the Service shows. No second one is made in its place, and none is left behind.
func TestAddressShowsTheCLB(t *testing.T) {
	t.Parallel()
	unlabeled := func(svc *corev1.Service) { delete(svc.Labels, driver.LabelLoadBalancerID) }
	for _, test := range []struct {
		name   string
		begin  func(t *testing.T) (w *world, id string)
		change func(*corev1.Service)
		left   int
	}{
		{"our own", named, unlabeled, 1},
		{"our own, deleted", named, func(svc *corev1.Service) { unlabeled(svc); deleteService(svc) }, 0},
		{"the official CCM's", officialNamed, unlabeled, 1},
		{"the official CCM's, deleted", officialNamed, func(svc *corev1.Service) { unlabeled(svc); deleteService(svc) }, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w, id := test.begin(t)
			w.restart()
			w.transport.next = lateTags{w.transport.next}
			w.change("web", test.change)
			w.converge("web")
			w.transport.next = w.emulator.Transport()
			if all := w.lbs(); len(all) != test.left || test.left == 1 && all[0].ID != id {
				t.Errorf("CLBs %v, want %d, and %s if there is one", all, test.left, id)
			}
			if got := w.get("web").Labels[driver.LabelLoadBalancerID]; test.left == 1 && got != id {
				t.Errorf("the label names %q, want %s", got, id)
			}
		})
	}
}

// officialNamed returns a world with a Service that the official CCM has put on a CLB with a name of its own.
func officialNamed(t *testing.T) (w *world, id string) {
	t.Helper()
	w = newWorld(t)
	threeNodes(w)
	svc := testService("web", 80)
	annotate(svc, annotation.Name, "shop")
	svc.Finalizers = []string{Finalizer}
	svc.Labels = map[string]string{driver.LabelHash: "0"}
	lb := w.officialCLB(svc, literalClusterID)
	svc.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: lb.Address}}
	w.put(svc)
	return w, lb.ID
}

// TestAddressOfAnotherCLB: the address that a Service shows can be that of a CLB on which nothing is its own, because addresses are used
// again.
func TestAddressOfAnotherCLB(t *testing.T) {
	t.Parallel()
	for name, tags := range map[string][]alicloud.Tag{
		"nobody's":          nil,
		"another Service's": {{Key: mark.TagOwner, Value: "a0000000000000000000000000000000"}, {Key: mark.TagCluster, Value: testCluster}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			threeNodes(w)
			other := w.makeCLB(tags...)
			svc := testService("web", 80)
			svc.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: other.Address}}
			w.put(svc)
			w.converge("web")
			if got := w.get("web").Labels[driver.LabelLoadBalancerID]; got == "" || got == other.ID || len(w.lbs()) != 2 {
				t.Errorf("on %q of %d CLBs, want one of its own besides %s", got, len(w.lbs()), other.ID)
			}
		})
	}
}

// TestPartThatCannotBeRead holds back what would be made twice and no other step, and is read again.
func TestPartThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		action string
		writes []string
	}{
		{"DescribeLoadBalancerListeners", []string{"RemoveVServerGroupBackendServers", "SetLoadBalancerTCPListenerAttribute"}},
		{"DescribeVServerGroups", []string{"RemoveVServerGroupBackendServers", "SetLoadBalancerTCPListenerAttribute"}},
	} {
		t.Run(test.action, func(t *testing.T) {
			t.Parallel()
			w := settled(t, testService("web", 80))
			w.change("web", func(svc *corev1.Service) { annotate(svc, annotation.Scheduler, "wlc") })
			w.deleteNode("c")
			w.drift("web")
			w.fault(map[string]any{"action": test.action, "code": "InternalError", "status": 500, "times": 10})
			if err := w.pass("web"); err == nil || !strings.Contains(err.Error(), test.action) {
				t.Errorf("the pass says %v, want the failure of %s", err, test.action)
			}
			if writes := writesOf(w.calls()); !slices.Equal(writes, test.writes) {
				t.Errorf("writes %v, want %v", writes, test.writes)
			}
			w.clearFaults()
			w.converge("web")
			if got := w.state()["a0f5e8a1cweb"].Listeners["tcp:80"]["Scheduler"]; got != "wlc" {
				t.Errorf("scheduler %v after the part could be read again", got)
			}
		})
	}
}
