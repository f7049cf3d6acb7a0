package slb

import (
	"io"
	"net/http"
	"strings"
	"testing"

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
