package deploy

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/waits"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/model"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/refusal"
)

// Work is what a job carries out for a Service.
type Work struct {
	Op     model.Op
	Target string
}

// workOf is the work for one of all Services.
type workOf struct {
	service types.UID
	Work
}

// heldFor is how soon the pass after one is that left out work whose jobs failed.
const heldFor = 30 * time.Second

// jobPause is how long work waits whose jobs failed. The cloud gives no reason for the failure of a job: the first one may be an accident.
var jobPause = refusal.Pause{Least: heldFor, Longest: waits.JobFailed}

// JobFailed notes what a job failed with, nil for one of which nothing is known. What is no work of a plan, such as a creation, waits for
// nothing.
func (m *Memory) JobFailed(service types.UID, work Work, err error) {
	if err == nil || work.Op == "" {
		return
	}
	m.work.Add(workOf{service, work}, err, jobPause, time.Now())
}

// JobSucceeded notes that a job did what it was to do.
func (m *Memory) JobSucceeded(service types.UID, work Work) { m.work.Drop(workOf{service, work}) }

// Held returns what the jobs of work failed with that waits now, nil for other work.
func (m *Memory) Held(service types.UID, work Work) error {
	return m.work.Err(workOf{service, work}, time.Now())
}

// Forget drops what is known of a Service.
func (m *Memory) Forget(service types.UID) {
	m.work.DropFunc(func(work workOf, _ error) bool { return work.service == service })
}
