package service

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// TestJobOfTheCloudIsNoSuccess: while the cloud is at work on what the rest of the plan waits for, the pass is neither a success nor a
// failure. It is made again when the job is likely to be done.
func TestJobOfTheCloudIsNoSuccess(t *testing.T) {
	t.Parallel()
	nlb := newProduct("nlb")
	nlb.work("web", 7*time.Second)
	inFrame(t, []driver.Engine{nlb}, func(t *testing.T, f *frame) {
		f.put(testService("web", testkube.Class(nlb.class())))
		if events := f.events(); len(events) != 0 {
			t.Errorf("events %q while the job is under way, want none", events)
		}
		if c := meta.FindStatusCondition(f.get("web").Status.Conditions, ConditionSynced); c != nil {
			t.Errorf("condition %+v while the job is under way, want none", c)
		}
		nlb.since()
		nlb.work("web", 0)
		time.Sleep(8 * time.Second)
		if events := withReason(f.events(), problem.ReasonEnsured); len(events) != 1 {
			t.Errorf("events %q after the job, want that of the success", events)
		}

		nlb.work("web", time.Minute)
		f.change("web", func(svc *corev1.Service) { svc.Spec.Type = corev1.ServiceTypeClusterIP })
		if !f.opts.hasFinalizer(f.get("web")) {
			t.Error("the finalizer is gone before the cloud has removed the load balancer")
		}
		nlb.work("web", 0)
		time.Sleep(2 * time.Minute)
		if f.opts.hasFinalizer(f.get("web")) {
			t.Error("the finalizer is left after the job")
		}
		if events := f.events(); slices.ContainsFunc(events, func(e string) bool { return e[:len("Warning")] == "Warning" }) {
			t.Errorf("events %q, want no warning", events)
		}
	})
}
