package slb

import (
	"io"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
)

// emptied answers one action with success and nothing else, as a gateway does that lost the answer of the cloud.
type emptied struct {
	next   http.RoundTripper
	action string
}

func (e emptied) RoundTrip(request *http.Request) (*http.Response, error) {
	answer, err := e.next.RoundTrip(request)
	if err != nil || request.URL.Query().Get("Action") != e.action {
		return answer, err
	}
	if err := answer.Body.Close(); err != nil {
		return nil, err
	}
	const empty = `{"RequestId":"1"}`
	answer.Body, answer.ContentLength = io.NopCloser(strings.NewReader(empty)), int64(len(empty))
	answer.Header.Del("Content-Length")
	return answer, nil
}

// TestEmptyAnswerMakesNoSecondGroup: an answer without content does not say that a CLB, a listener or a vServer group is gone.
func TestEmptyAnswerMakesNoSecondGroup(t *testing.T) {
	t.Parallel()
	for _, action := range []string{"DescribeVServerGroupAttribute", "DescribeVServerGroups", "DescribeLoadBalancerAttribute",
		"DescribeLoadBalancerListeners"} {
		t.Run(action, func(t *testing.T) {
			t.Parallel()
			w := settled(t, testService("web", 80))
			for _, begin := range []func(){func() { w.drift("web") }, w.restart} {
				begin()
				w.transport.next = emptied{w.transport.next, action}
				_ = w.pass("web") //nolint:errcheck // whether it fails does not matter
				w.transport.next = w.emulator.Transport()
				w.converge("web")
			}
			for _, call := range writesOf(w.calls()) {
				if call == "CreateVServerGroup" || call == "CreateLoadBalancer" || call == "SetLoadBalancerTCPListenerAttribute" {
					t.Errorf("%s was called", call)
				}
			}
		})
	}
}

// TestEmptyListSearchMakesNoSecondList: an access control list that the search by tag does not find is still the one that the
// listeners have.
func TestEmptyListSearchMakesNoSecondList(t *testing.T) {
	t.Parallel()
	for name, begin := range map[string]func(*world){"drift": func(w *world) { w.drift("web") }, "restart": (*world).restart} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := settled(t, restricted("192.0.2.0/24"))
			begin(w)
			w.fault(map[string]any{"action": "DescribeAccessControlLists", "stale": "24h", "times": 0})
			w.change("web", func(svc *corev1.Service) { svc.Spec.LoadBalancerSourceRanges = []string{"198.51.100.0/24"} })
			w.mustPass("web")
			for _, call := range writesOf(w.calls()) {
				if call == "CreateAccessControlList" || call == "SetLoadBalancerTCPListenerAttribute" {
					t.Errorf("%s was called", call)
				}
			}
			if got := w.entries(); len(got) != 1 || got[0] != "198.51.100.0/24" {
				t.Errorf("entries %v, want those of the change", got)
			}
		})
	}
}

// TestSeveralAccessLists: several lists on a listener come back as several, and are no difference.
func TestSeveralAccessLists(t *testing.T) {
	t.Parallel()
	for _, mode := range []cloud.SeveralACLs{cloud.ACLIDEmpty, cloud.ACLIDFirst, cloud.ACLIDJoined} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			config := cloud.DefaultConfig()
			config.SeveralACLs = mode
			w := newWorldIn(t, config)
			threeNodes(w)
			svc := testService("web", 80)
			annotate(svc, annotation.ACLStatus, "on")
			annotate(svc, annotation.ACLType, "white")
			annotate(svc, annotation.ACLID, "acl-2,acl-1")
			w.put(svc)
			w.mustPass("web")
			w.calls()
			for _, begin := range []func(){func() { w.drift("web") }, w.restart} {
				begin()
				w.mustPass("web")
				if writes := writesOf(w.calls()); len(writes) != 0 {
					t.Errorf("writes %v, want none", writes)
				}
			}
		})
	}
}
