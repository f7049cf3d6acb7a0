package nlb

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/teststorm"
)

const (
	// manyAtOnce Services take two minutes at the published limit of creations.
	manyAtOnce = 400
	// creationTime is how long the cloud of tests takes to create an NLB, and then a listener on it.
	creationTime = 21 * settle
)

// TestServicesAtOnce: of many Services made at once, the last one has its address in 1.1 times what the quota of creations and its own
// creation take, with and without a new process in the middle of it.
func TestServicesAtOnce(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	teststorm.WithRestart(t, func(t *testing.T, restart bool) {
		cfg := cloud.DefaultConfig()
		cfg.Quotas = cloud.Limits{NLBs: 10_000, NLBGroupsPerServer: 10_000}
		s := newStormOn(t, emulator.Options{Config: cfg, Settle: settle, RateLimits: emulator.RateLimitsPublished}, nil, 24*time.Hour)
		s.joins("a", 3)
		s.at(time.Minute)
		first := teststorm.Published(s.kube)
		began := time.Now()
		for i := range manyAtOnce {
			s.put(newService(fmt.Sprintf("s%03d", i), testkube.TCP(80)))
			synctest.Wait() // the API server of tests keeps 100 events
		}
		if restart {
			time.Sleep(time.Minute)
			s.replaceProcess()
		}
		s.rest()
		teststorm.AllPublished(t, first, began, manyAtOnce, manyAtOnce*time.Minute/addQuota+creationTime)
		for _, call := range s.account.NewCalls() {
			throttled := restart && strings.HasPrefix(call.Code, "Throttling") // a new process does not know what the one before it has used
			if call.Code != "" && !throttled {
				t.Errorf("%s refused: %s", call.Action, call.Code)
			}
		}
		s.writesNothing()
	})
}
