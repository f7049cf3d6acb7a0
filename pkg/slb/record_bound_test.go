package slb

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// TestMoreThanARecordHolds: what a Service has asked for while the cloud refused something grows no further than its status has room for.
// The Service is served on, and one Warning says what that costs.
func TestMoreThanARecordHolds(t *testing.T) {
	t.Parallel()
	w := settled(t, testService("web", 80))
	id, domains := w.onlyCLB(), make([]string, 2000)
	for i := range domains {
		domains[i] = fmt.Sprintf("domain-%d.example", i)
	}
	w.change("web", func(svc *corev1.Service) {
		testkube.SetCondition(svc, driver.ConditionWritten, driver.ReasonWritten, fmt.Sprintf(
			`{"loadBalancer":%q,"made":%q,"uid":%q,"domains":["%s"]}`, id, id, svc.UID, strings.Join(domains, `","`)))
		annotate(svc, annotation.Scheduler, "wlc")
	})
	w.restart()
	w.fault(map[string]any{"action": "SetLoadBalancerTCPListenerAttribute", "code": "OperationFailed.Unknown", "status": 400, "times": 0})
	w.newEvents()
	for range 4 {
		_ = w.pass("web") //nolint:errcheck // the cloud refuses something
	}
	written := meta.FindStatusCondition(w.get("web").Status.Conditions, driver.ConditionWritten).Message
	if events := strings.Join(w.newEvents(), "\n"); len(written) > 24<<10 || strings.Count(events, problem.ReasonFeatureNotSupported) != 1 {
		t.Errorf("%d bytes, events %s", len(written), events)
	}
	if record, _ := driver.RecordOn(w.get("web")); record.LoadBalancerID != id || record.Made != id {
		t.Errorf("Record %+v", record)
	}
}
