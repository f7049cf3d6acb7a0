package nlb

import (
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/waits"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/deploy"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/model"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
)

// jobs are those under way, by target. It is a value: what changes it returns another one.
type jobs map[string]pending

// pending is a job, or a change of the load balancer's status, that is under way.
type pending struct {
	// id is that of the job, or of the load balancer.
	id           string
	loadBalancer bool
	// step says what it carries out, work names that, and part is what it changes.
	step  string
	work  deploy.Work
	part  model.Part
	since time.Time
	// creates says that its target is there only if it succeeds.
	creates bool
}

// timeLimit is how long it may take before it counts as failed.
func (p pending) timeLimit() time.Duration {
	if p.loadBalancer {
		return waits.JobOfLoadBalancer
	}
	return waits.Job
}

// withJob returns the jobs with one more.
func (j jobs) withJob(target string, p pending) jobs {
	after := jobs{}
	maps.Copy(after, j)
	after[target] = p
	return after
}

// withoutJob returns the jobs but for one that ended.
func (j jobs) withoutJob(id string) jobs {
	after := maps.Clone(j)
	maps.DeleteFunc(after, func(_ string, p pending) bool { return p.id == id })
	return after
}

// targetsOf are those of a job.
func (j jobs) targetsOf(id string) []string {
	var targets []string
	for target, p := range j {
		if p.id == id {
			targets = append(targets, target)
		}
	}
	return targets
}

// withStarted returns the jobs with those that a plan began.
func (j jobs) withStarted(began []deploy.Started) jobs {
	after := jobs{}
	maps.Copy(after, j)
	for _, job := range began {
		for _, target := range job.Targets {
			after[target] = pending{id: string(job.Job), step: job.Step, work: job.Work, part: job.Part, since: time.Now(), creates: job.Creates}
		}
	}
	return after
}

// settleJobs returns what is known after the jobs that have ended, and what those failed with. What a failed job was about is read again.
func (e *engine) settleJobs(svc *corev1.Service, known observed) (after observed, failures []error) {
	for _, target := range slices.Sorted(maps.Keys(known.jobs)) {
		p, ok := known.jobs[target]
		if !ok {
			continue // a job with two targets is settled with the first
		}
		var err error
		if known, err = e.settleOne(svc, known, p); err != nil {
			failures = append(failures, err)
		}
	}
	return known, failures
}

// settleOne returns what is known of one thing that was under way. What nobody waits for any more, or what takes too long, may have ended
// either way: it is read again.
func (e *engine) settleOne(svc *corev1.Service, known observed, p pending) (after observed, failure error) {
	item, ok := e.awaits.outcomeOf(p.id)
	switch {
	case ok && item.ended && item.status == alicloud.JobSucceeded:
		known = known.afterCreation(p, true)
		known.jobs = known.jobs.withoutJob(p.id)
		e.memory.JobSucceeded(svc.UID, p.work)
		return e.afterSuccess(svc, known, p, item.found), nil
	case ok && item.ended && item.status == alicloud.JobFailed:
		known = known.afterCreation(p, false)
		failure = &alicloud.JobError{Job: alicloud.Job(p.id), Op: string(p.work.Op), Text: p.step + " failed; the cloud did not state a reason"}
	case ok && !item.ended && time.Since(p.since) < p.timeLimit():
		return known, nil
	case ok && !item.ended && p.loadBalancer:
		e.awaits.dropItem(p.id)
		failure = fmt.Errorf("%s: not done after %s", p.step, p.timeLimit())
	case ok && !item.ended:
		e.awaits.dropItem(p.id)
		failure = &alicloud.JobError{Job: alicloud.Job(p.id), Op: string(p.work.Op),
			Text: fmt.Sprintf("%s: not done after %s", p.step, p.timeLimit())}
	}
	e.memory.JobFailed(svc.UID, p.work, failure)
	known.jobs = known.jobs.withoutJob(p.id)
	return known.invalidateParts(map[model.Part]string{p.part: "a job ended in a way that is not known"}), failure
}

// afterSuccess returns what is known after something ended as it should.
func (e *engine) afterSuccess(svc *corev1.Service, known observed, p pending, found *alicloud.NLB) observed {
	switch {
	case p.loadBalancer && found == nil:
		known.Presence = known.Presence.AfterSeenDeletion()
		known.lb, known.listeners = driver.Part[alicloud.NLB]{}, driver.Part[[]model.Listener]{}
		e.memory.Creations.Freed()
	case p.loadBalancer:
		if known.lb.Value.ID == found.ID {
			known.lb.Set(*found)
		}
	case p.step == string(model.OpDeleteLoadBalancer):
		return e.awaitDeletion(svc, known, p.part)
	}
	return known
}

// awaitCreation waits for a load balancer that is provisioned.
func (e *engine) awaitCreation(svc *corev1.Service, known observed) observed {
	return e.awaitState(svc, known, "creation", model.PartLoadBalancer, func(lb *alicloud.NLB) bool {
		return lb != nil && lb.Status != alicloud.NLBProvisioning
	})
}

// awaitDeletion waits until a load balancer is gone: it is some seconds after the job.
func (e *engine) awaitDeletion(svc *corev1.Service, known observed, part model.Part) observed {
	return e.awaitState(svc, known, "deletion", part, func(lb *alicloud.NLB) bool { return lb == nil })
}

func (e *engine) awaitState(svc *corev1.Service, known observed, what string, part model.Part, until func(*alicloud.NLB) bool) observed {
	id := known.lb.Value.ID
	e.awaits.loadBalancer(id, mark.ServiceName(svc), until)
	known.jobs = known.jobs.withJob(model.TargetLoadBalancer,
		pending{id: id, loadBalancer: true, step: what + " of " + id, part: part, since: time.Now()})
	return known
}
