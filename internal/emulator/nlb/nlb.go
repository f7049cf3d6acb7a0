// Package nlb carries out the actions of Network Load Balancer (product code nlb) on the store.
//
// It decides what a load balancer looks like. Most writes only begin something: they answer with the id of a job, the object is in a
// transitional state until the job ends, and refuses other writes meanwhile.
package nlb

import (
	"fmt"
	"slices"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

// service carries the store that the actions work on.
type service struct{ *cloud.Store }

// Product returns the actions of NLB on a store.
// Source: https://www.alibabacloud.com/help/en/slb/network-load-balancer/developer-reference/api-nlb-2022-04-30-overview
func Product(s *cloud.Store) api.Product {
	v := service{s}
	return api.Product{Name: "nlb", Version: api.VersionNLB, Actions: slices.Concat(
		v.instanceActions(), v.attributeActions(), v.networkActions(), v.listenerActions(), v.certificateActions(), v.groupActions(),
		v.serverActions(), v.tagActions(), v.jobActions(),
	)}
}

func lbID() api.Param       { return api.Str("LoadBalancerId", api.Required) }
func listenerID() api.Param { return api.Str("ListenerId", api.Required) }
func groupID() api.Param    { return api.Str("ServerGroupId", api.Required) }

// write are the parameters of a write: its own and those of every write.
func write(params ...api.Param) []api.Param {
	return append(params, api.Str("ClientToken", api.Len(1, 64)), api.Flag("DryRun"), api.Str("RegionId"))
}

// tag has the spelling of lists, attributeTag that of GetLoadBalancerAttribute.
type (
	tag          struct{ Key, Value string }
	attributeTag struct{ TagKey, TagValue string }
)

func tagViews(tags cloud.Tags) []tag {
	views := make([]tag, 0, len(tags))
	for _, t := range tags {
		views = append(views, tag(t))
	}
	return views
}

// passes reports whether a list filter lets a value through.
func passes(filter []string, value string) bool {
	return len(filter) == 0 || slices.Contains(filter, value)
}

// once runs a write whose ClientToken was not used before; with DryRun it answers that the call would succeed, and changes nothing.
func (s service) once(c *api.Call, f func() (any, error)) (any, error) {
	mismatch := api.BadRequest("IdempotenceSignatureMismatch", "The ClientToken was used before with other parameters.")
	return s.Tokens.Once(c, mismatch, f)
}

// checked begins a write: run is reached only after all checks. A dry run ends before it.
func checked(c *api.Call, run func() (any, error)) (any, error) {
	if c.Bool("DryRun", false) {
		return nil, api.BadRequest("DryRunOperation", "Request validation has been passed with DryRun flag set.")
	}
	return run()
}

// done is the answer of the request id alone.
func done() (any, error) { return nil, nil } //nolint:nilnil // the encoder adds the request id

// jobAnswer is the answer of a write that goes on after it.
type jobAnswer struct{ JobId string } //nolint:revive // name on the wire

// job begins the asynchronous part of a call.
func (s service) job(c *api.Call) string {
	j := &cloud.NLBJob{Object: s.NewObject("job")}
	switch c.Job {
	case api.JobHangs:
		j.Phase = cloud.Steady(cloud.JobProcessing)
	case api.JobFails:
		j.Phase = s.Begin(cloud.JobProcessing, cloud.JobFailed, c.Now)
	default:
		j.Phase = s.Begin(cloud.JobProcessing, cloud.JobSucceeded, c.Now)
	}
	s.NLBJobs.Add(j)
	return j.ID
}

// transition is the state of an object during a job and after it: then with success, back where the job fails.
func (s service) transition(c *api.Call, during, then, back string) cloud.Phase {
	switch c.Job {
	case api.JobHangs:
		return cloud.Steady(during)
	case api.JobFails:
		return s.Begin(during, back, c.Now)
	}
	return s.Begin(during, then, c.Now)
}

// applies reports whether the call has its effect.
func applies(c *api.Call) bool { return c.Job != api.JobFails }

func illegal(name, reason string, args ...any) *api.Error {
	return api.BadRequest("IllegalParam."+name, "The param %s is illegal: %s.", name, fmt.Sprintf(reason, args...))
}

func notFound(kind, id string) *api.Error {
	return api.NotFound("ResourceNotFound."+kind, "The specified resource %s is not found.", id)
}

func conflictLock(id string) *api.Error {
	return api.BadRequest("Conflict.Lock", "The operation is conflicted by lock of %s.", id)
}

// loadBalancer finds the instance of a call.
func (s service) loadBalancer(c *api.Call, id string) (*cloud.NLB, error) {
	lb, ok := s.NLBs.Get(id)
	if !ok || lb.Phase.At(c.Now) == "" || !c.Finds(lb.Created) {
		return nil, notFound("loadBalancer", id)
	}
	return lb, nil
}

// writable finds the instance of a call that changes it, which has to be active.
func (s service) writable(c *api.Call, id string) (*cloud.NLB, error) {
	lb, err := s.loadBalancer(c, id)
	if err != nil {
		return nil, err
	}
	switch status := lb.Phase.At(c.Now); {
	case len(lb.Locks) > 0:
		return nil, api.BadRequest("OperationDenied.LoadBalancerLocked", "The load balancer %s is locked: %v.", lb.ID, lb.Locks)
	case status == cloud.NLBConfiguring:
		return nil, conflictLock(lb.ID)
	case status != cloud.NLBActive:
		return nil, api.BadRequest("IncorrectStatus.loadbalancer", "The status of %s is %s.", lb.ID, status)
	}
	return lb, nil
}

// configuring puts an instance into the state in which it takes no other write, and answers with the job.
func (s service) configuring(c *api.Call, lb *cloud.NLB) (any, error) {
	lb.Phase = s.transition(c, cloud.NLBConfiguring, cloud.NLBActive, cloud.NLBActive)
	return jobAnswer{s.job(c)}, nil
}
