package nlb

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
)

// noListeners answers once that there are no listeners, and has something done before.
type noListeners struct {
	next http.RoundTripper
	do   func() // nil once it was done
}

func (n *noListeners) RoundTrip(request *http.Request) (*http.Response, error) {
	answer, err := n.next.RoundTrip(request)
	if err != nil || n.do == nil || request.URL.Query().Get("Action") != "ListListeners" {
		return answer, err
	}
	n.do()
	n.do = nil
	const empty = `{"RequestId":"1","TotalCount":0,"Listeners":[]}`
	if err := answer.Body.Close(); err != nil {
		return nil, err
	}
	answer.Body, answer.ContentLength = io.NopCloser(strings.NewReader(empty)), int64(len(empty))
	answer.Header.Del("Content-Length")
	return answer, nil
}

// TestOneAnswerIsNotTheLastOfAGroup: while a Service of a group goes, the last other one goes, too, and an answer lacks the listener of a
// Service that names the NLB by its ID. The NLB stays for that one.
func TestOneAnswerIsNotTheLastOfAGroup(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.groupWorld(grouped("web", "edge", 1, testkube.TCP(80)))
		w.groupWorld(newService("guest", testkube.TCP(81), born(2), with(annotation.LoadBalancerID, w.only(edgeNLB).ID),
			with(annotation.ForceOverrideListeners, "true")))
		w.put(grouped("shop", "edge", 3, testkube.TCP(80))) // has the finalizer, and no port
		w.tries(2, "shop")
		testkit.Check(t, w.Invalidate(t.Context(), w.get("web"), "drift"))
		w.remove("web")
		w.fillServices()
		answers := &noListeners{w.transport.next, func() { w.vanish("shop") }}
		w.transport.next = answers
		w.converge("web")
		if answers.do != nil {
			t.Fatal("web reads no listeners")
		}
		w.wantOwners(map[string][]string{edgeNLB: {"tcp:81 guest"}})
	})
}
