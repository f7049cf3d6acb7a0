package nlb

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/waits"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

const (
	// soonPolls is how long a job is asked for every second; from then on every latePoll.
	soonPoll  = time.Second
	soonPolls = 10 * time.Second
	latePoll  = 3 * time.Second
	// forgottenAfter is when nobody can wait for anything any more.
	forgottenAfter = 2 * waits.JobOfLoadBalancer
	// pollTimeout bounds one round of polls.
	pollTimeout = 30 * time.Second
)

// jobWaits asks for the jobs of all Services together, and for load balancers that are created or deleted. It polls only while somebody
// waits.
type jobWaits struct {
	api  API
	wake func(types.NamespacedName)

	mu    sync.Mutex // guards the rest
	items map[string]*jobWait
	// timer is for the next poll; polling says that one is under way, which sets the timer when it ends.
	timer   *time.Timer
	polling bool
	// unread is why the states of jobs cannot be read, nil where the last call for them was answered.
	unread error
}

// jobWait is one thing that Services wait for: a job, or a load balancer that changes its status.
type jobWait struct {
	// loadBalancer says that the id is that of a load balancer.
	loadBalancer bool
	services     sets.Set[types.NamespacedName]
	since, next  time.Time
	status       alicloud.JobStatus
	ended        bool
	// found is the load balancer as it was seen last, nil for one that is gone. missed says that the last answer lacked it: one proves
	// nothing.
	found  *alicloud.NLB
	missed bool
	// until reports whether the load balancer is as it is waited for.
	until func(*alicloud.NLB) bool
}

// awaitJob waits for a job on behalf of a Service, and returns what is known of it.
func (a *jobWaits) awaitJob(job alicloud.Job, svc types.NamespacedName) {
	a.addItem(string(job), svc, &jobWait{})
}

// loadBalancer waits for a load balancer, nil where it is gone.
func (a *jobWaits) loadBalancer(id string, svc types.NamespacedName, until func(*alicloud.NLB) bool) {
	a.addItem(id, svc, &jobWait{loadBalancer: true, until: until})
}

func (a *jobWaits) addItem(id string, svc types.NamespacedName, item *jobWait) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.items == nil {
		a.items = map[string]*jobWait{}
	}
	item.since, item.services = time.Now(), sets.New(svc)
	if have, ok := a.items[id]; ok {
		if !have.ended && !item.loadBalancer {
			have.services.Insert(svc)
			return
		}
		// What has ended is about an earlier wait that nobody asked for any more, and a load balancer may be waited for in another status.
		item.services = item.services.Union(have.services)
	}
	item.next = item.since.Add(item.pollInterval(item.since))
	if item.deletion() {
		item.next = item.since.Add(gatherPolls) // its job has ended: it may be gone already
	}
	a.items[id] = item
	a.scheduleLocked()
}

// deletion reports whether the end of a load balancer is waited for.
func (w *jobWait) deletion() bool { return w.loadBalancer && w.until(nil) }

// pollInterval is how long after a poll the next one is. A creation takes longer than anything else.
func (w *jobWait) pollInterval(now time.Time) time.Duration {
	if w.loadBalancer && !w.deletion() || now.Sub(w.since) >= soonPolls {
		return latePoll
	}
	return soonPoll
}

// outcomeOf returns what is known of an item, and drops it once it has ended: whoever waited knows it then.
func (a *jobWaits) outcomeOf(id string) (jobWait, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	item, ok := a.items[id]
	if !ok {
		return jobWait{}, false
	}
	if item.ended {
		delete(a.items, id)
	}
	return *item, true
}

// dropItem gives up waiting.
func (a *jobWaits) dropItem(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.items, id)
}

// scheduleLocked sets the timer for the next poll.
func (a *jobWaits) scheduleLocked() {
	if a.polling {
		return
	}
	if a.timer != nil {
		a.timer.Stop()
		a.timer = nil
	}
	var next time.Time
	for _, item := range a.items {
		if !item.ended && (next.IsZero() || item.next.Before(next)) {
			next = item.next
		}
	}
	if !next.IsZero() {
		a.timer = time.AfterFunc(max(0, time.Until(next)), a.pollDue)
	}
}

const (
	// pollSlack lets polls that are due within it go together.
	pollSlack = soonPoll / 2
	// gatherPolls is how long the passes of Services that one poll has woken have to ask for their next one.
	gatherPolls = 100 * time.Millisecond
)

// pollDue asks for everything that is due, and wakes the Services whose wait has ended.
func (a *jobWaits) pollDue() {
	a.mu.Lock()
	busy := a.polling
	a.polling = true
	a.mu.Unlock()
	if busy {
		return // the timer was set anew when it had fired already
	}
	// A poll is for all Services: the context of a pass would end with the pass, and give its Service's place in the queue to all.
	ctx, cancel := context.WithTimeout(context.Background(), pollTimeout) //nolint:forbidigo // a timer has no caller, and the timeout ends it
	defer cancel()
	// Nor does one wait behind the reads of single Services, of which there are hundreds when as many are made at once: all others wait for
	// it.
	ctx = alicloud.WithWaiting(ctx, alicloud.Waiting{})
	jobs, balancers := a.dueItems(time.Now())
	for chunk := range slices.Chunk(jobs, alicloud.MaxJobsPerCall) {
		a.pollJobs(ctx, chunk)
	}
	for chunk := range slices.Chunk(balancers, alicloud.MaxNLBQuery) {
		a.pollLoadBalancers(ctx, chunk)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.polling = false
	a.scheduleLocked()
}

func (a *jobWaits) dueItems(now time.Time) (jobs []alicloud.Job, balancers []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for id, item := range a.items {
		if now.Sub(item.since) > forgottenAfter {
			delete(a.items, id) // its Service is gone, or began something else
			continue
		}
		if item.ended || item.next.After(now.Add(pollSlack)) {
			continue
		}
		item.next = now.Add(item.pollInterval(now))
		if item.loadBalancer {
			balancers = append(balancers, id)
		} else {
			jobs = append(jobs, alicloud.Job(id))
		}
	}
	slices.Sort(jobs)
	slices.Sort(balancers)
	return jobs, balancers
}

// pollJobs asks for jobs. One that the cloud does not know fails the call for all of them: then each is asked for by itself. A list that
// the cloud may have refused for its length goes in halves: no document says how many jobs it may have, and jobs that nobody reads seem to
// hang.
func (a *jobWaits) pollJobs(ctx context.Context, jobs []alicloud.Job) {
	found, err := a.api.NLBJobs(ctx, jobs)
	if alicloud.IsNotFound(err) {
		a.noteUnread(ctx, jobs, a.pollEachJob(ctx, jobs))
		return
	}
	if half := len(jobs) / 2; half > 0 && alicloud.IsJobsPerCall(err) {
		a.pollJobs(ctx, jobs[:half])
		a.pollJobs(ctx, jobs[half:])
		return
	}
	if alicloud.IsForbidden(err) {
		err = a.pollEachJob(ctx, jobs) // another right
	} else if err == nil {
		for _, job := range jobs {
			a.noteEnded(string(job), found[job])
		}
	}
	a.noteUnread(ctx, jobs, err)
}

// noteUnread notes whether the states of jobs could be read. Those that have taken long enough count as ended, nobody knows how: what is
// there is read.
func (a *jobWaits) noteUnread(ctx context.Context, jobs []alicloud.Job, err error) {
	a.mu.Lock()
	a.unread = err
	var given []string
	for _, job := range jobs {
		if item := a.items[string(job)]; err != nil && item != nil && !item.ended && time.Since(item.since) >= waits.JobUnread {
			given = append(given, string(job))
		}
	}
	a.mu.Unlock()
	if err != nil {
		klog.FromContext(ctx).V(2).Info("Cannot read the states of jobs", "jobs", len(jobs), "err", err)
	}
	for _, id := range given {
		a.endItem(id, func(*jobWait) {})
	}
}

// forbiddenError returns why the manager may not read the states of jobs, nil where it may.
func (a *jobWaits) forbiddenError() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if alicloud.IsForbidden(a.unread) {
		return a.unread
	}
	return nil
}

// pollEachJob asks for one job after the other, so that one that the cloud does not know hides no other.
func (a *jobWaits) pollEachJob(ctx context.Context, jobs []alicloud.Job) (unread error) {
	for _, job := range jobs {
		status, err := a.api.NLBJob(ctx, job)
		if err == nil || alicloud.IsNotFound(err) {
			a.noteEnded(string(job), status)
			continue
		}
		unread = err
	}
	return unread
}

// noteEnded notes the status of a job. One whose status nobody knows has ended, too: what is there is read.
func (a *jobWaits) noteEnded(id string, status alicloud.JobStatus) {
	if status == alicloud.JobProcessing {
		return
	}
	a.endItem(id, func(item *jobWait) { item.status = status })
}

func (a *jobWaits) pollLoadBalancers(ctx context.Context, ids []string) {
	found, err := a.api.ListNLBs(ctx, alicloud.NLBQuery{IDs: ids})
	if err != nil {
		klog.FromContext(ctx).V(2).Info("Cannot read the states of load balancers", "lbs", len(ids), "err", err)
		return
	}
	for _, id := range ids {
		var lb *alicloud.NLB
		if at := slices.IndexFunc(found, func(lb alicloud.NLB) bool { return lb.ID == id }); at >= 0 {
			lb = &found[at]
		}
		a.mu.Lock()
		item, ok := a.items[id]
		done := ok && item.until(lb) && (lb != nil || item.missed)
		if ok {
			item.missed = lb == nil
		}
		a.mu.Unlock()
		if done {
			a.endItem(id, func(item *jobWait) { item.found, item.status = lb, alicloud.JobSucceeded })
		}
	}
}

func (a *jobWaits) endItem(id string, note func(*jobWait)) {
	a.mu.Lock()
	item, ok := a.items[id]
	var woken []types.NamespacedName
	if ok {
		note(item)
		item.ended = true
		woken = item.services.UnsortedList()
	}
	a.mu.Unlock()
	for _, svc := range woken {
		if a.wake != nil {
			a.wake(svc)
		}
	}
}
