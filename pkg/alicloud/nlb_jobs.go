package alicloud

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// Job is the id of what a write of NLB began. The write is done once the job is; the object refuses other writes until then.
type Job string

// JobStatus is how far a job is.
type JobStatus int

// Statuses of a job.
const (
	// JobUnknown says that the cloud did not say.
	JobUnknown JobStatus = iota
	JobProcessing
	JobSucceeded
	JobFailed
)

// MaxJobsPerCall is how many jobs [Client.NLBJobs] asks for in one call. The documents name no number; the official CCM asks for 20.
const MaxJobsPerCall = 20

// NLBJobs returns the status of at most [MaxJobsPerCall] jobs. A job that the answer lacks is missing from the result. One that
// the cloud does not know fails the call with an error for which [IsNotFound] holds.
func (c *Client) NLBJobs(ctx context.Context, jobs []Job) (map[Job]JobStatus, error) {
	if len(jobs) > MaxJobsPerCall {
		return nil, fmt.Errorf("query of %d jobs: at most %d in one call", len(jobs), MaxJobsPerCall)
	}
	ids := make([]string, len(jobs))
	for i, job := range jobs {
		ids[i] = string(job)
	}
	out := &struct {
		answer
		Jobs []struct{ Id, Status string }
	}{answer: newAnswer()}
	if err := c.call(ctx, "ListAsynJobs", productNLB, params{}.setList("JobIds", ids), out); err != nil {
		return nil, err
	}
	found := map[Job]JobStatus{}
	for _, job := range out.Jobs {
		if !slices.Contains(ids, job.Id) {
			return nil, out.unusable("ListAsynJobs", "asked for %q, got %q", ids, job.Id)
		}
		found[Job(job.Id)] = jobStatus(job.Status)
	}
	return found, nil
}

// IsJobsPerCall reports whether the cloud may have refused a list of jobs for its length. No document names the code of that: it can be any
// about the parameters of the call.
func IsJobsPerCall(err error) bool {
	e, ok := asAPIError(err)
	if !ok {
		return false
	}
	code := strings.ToLower(e.Code)
	return strings.HasPrefix(code, "illegalparam") || strings.HasPrefix(code, "invalidparam")
}

// NLBJob returns the status of one job.
func (c *Client) NLBJob(ctx context.Context, job Job) (JobStatus, error) {
	out := &struct {
		answer
		Status string
	}{answer: newAnswer()}
	if err := c.call(ctx, "GetJobStatus", productNLB, params{"JobId": string(job)}, out); err != nil {
		return JobUnknown, err
	}
	return jobStatus(out.Status), nil
}

// jobStatus reads a status, which the API spells in two ways.
func jobStatus(text string) JobStatus {
	switch strings.ToLower(text) {
	case "processing":
		return JobProcessing
	case "succeeded":
		return JobSucceeded
	case "failed":
		return JobFailed
	}
	return JobUnknown
}

// begun is the answer to a write that a job carries out.
type begun struct {
	answer
	JobId, ListenerId, ServerGroupId string
}

// nlbBeginWrite runs an action that a job carries out.
func (c *Client) nlbBeginWrite(ctx context.Context, action string, in params) (*begun, error) {
	out := &begun{answer: newAnswer()}
	if err := c.call(ctx, action, productNLB, in, out); err != nil {
		return nil, err
	}
	if out.JobId == "" {
		return nil, out.unusable(action, "the answer has no JobId")
	}
	return out, nil
}

// nlbJobWrite runs an action of whose answer only the job is of interest.
func (c *Client) nlbJobWrite(ctx context.Context, action string, in params) (Job, error) {
	out, err := c.nlbBeginWrite(ctx, action, in)
	if err != nil {
		return "", err
	}
	return Job(out.JobId), nil
}

// nlbWrite runs an action that is done when it is answered.
func (c *Client) nlbWrite(ctx context.Context, action string, in params) error {
	return c.call(ctx, action, productNLB, in, plainAnswer())
}
