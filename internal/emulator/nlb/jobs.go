package nlb

import (
	"strconv"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

// jobsPerCall is how many ids ListAsynJobs takes; more are assumed to be refused.
const jobsPerCall = 20

func (s service) jobActions() []api.Action {
	return []api.Action{
		{Name: "GetJobStatus", Kind: api.Read, Params: []api.Param{api.Str("JobId", api.Required), api.Str("ClientToken")}, Run: s.jobStatus},
		{Name: "ListAsynJobs", Kind: api.Read, Params: []api.Param{api.ListOf("JobIds", jobsPerCall, api.Required)}, Run: s.listJobs},
	}
}

func (s service) findJob(c *api.Call, id string) (*cloud.NLBJob, error) {
	j, ok := s.NLBJobs.Get(id)
	if !ok || c.Now.After(j.Created.Add(cloud.NLBJobLife)) && c.Holds("nlb.job-life") {
		return nil, api.NotFound("ResourceNotFound.JobId", "The specified job %s is not found.", id)
	}
	return j, nil
}

func (s service) jobStatus(c *api.Call) (any, error) {
	j, err := s.findJob(c, c.Str("JobId"))
	if err != nil {
		return nil, err
	}
	return struct{ Status string }{j.Phase.At(c.Now)}, nil
}

// listJobs answers without the reason of a failure, and with a count that is text.
func (s service) listJobs(c *api.Call) (any, error) {
	type view struct{ Id, Status string } //nolint:revive // names on the wire
	var jobs []view
	ids := c.List("JobIds")
	if len(ids) > jobsPerCall/2 && !c.Holds("nlb.ids-per-job-list") {
		return nil, api.Invalid("JobIds", "%d are too many", len(ids))
	}
	for _, id := range ids {
		j, err := s.findJob(c, id)
		if err != nil && !c.Holds("nlb.unknown-job-fails-list") {
			continue
		}
		if err != nil {
			return nil, err
		}
		jobs = append(jobs, view{j.ID, j.Phase.At(c.Now)})
	}
	var count any = strconv.Itoa(len(jobs))
	if !c.Holds("nlb.count-is-text") {
		count = len(jobs)
	}
	return struct {
		Jobs       []view
		TotalCount any
	}{jobs, count}, nil
}
