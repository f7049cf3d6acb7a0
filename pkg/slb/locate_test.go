package slb

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
)

// lateTags answers searches by tag as long as tags are not indexed: with no load balancer.
type lateTags struct{}

func (lateTags) RoundTrip(request *http.Request) (*http.Response, error) {
	answer, err := http.DefaultTransport.RoundTrip(request)
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
			w.transport.next = lateTags{}
			w.change("web", test.change)
			w.mustPass("web")
			w.transport.next = nil
			if got := len(w.lbs()); got != test.left {
				t.Errorf("%d CLBs, want %d", got, test.left)
			}
		})
	}
}

// TestPartThatCannotBeRead blocks the steps that depend on it and no others, and is read again.
func TestPartThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		action string
		writes []string
	}{
		{"DescribeLoadBalancerListeners", []string{"RemoveVServerGroupBackendServers"}},
		{"DescribeVServerGroups", nil},
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
