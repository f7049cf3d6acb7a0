package deploy

import (
	"testing"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/model"
)

// TestWeightsWait: a change of shares goes last, what takes a backend server out or in does not.
func TestWeightsWait(t *testing.T) {
	t.Parallel()
	weight := func(w int) []alicloud.Backend { return []alicloud.Backend{{Weight: w}} }
	for _, test := range []struct {
		from, to int
		want     alicloud.Priority
	}{
		{10, 11, alicloud.PriorityDrift}, {10, 0, alicloud.PriorityRemoval}, {0, 10, alicloud.PriorityBackend},
	} {
		step := model.Step{Op: model.OpSetBackends, Old: weight(test.from), New: weight(test.to)}
		if got := priorityOf(executors[step.Op], step); got != test.want {
			t.Errorf("%d -> %d: priority %d, want %d", test.from, test.to, got, test.want)
		}
	}
}
