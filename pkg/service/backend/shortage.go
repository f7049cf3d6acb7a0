package backend

import (
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// shortage is what quotas of the cloud keep from the ports of a Service.
type shortage struct {
	// left of all backends have no room on the load balancer: those of the port that has to do without the most. differ says that it is not
	// the same for all ports.
	left, all int
	differ    bool
	// full are nodes with endpoints whose instances the cloud does not let become backends once more, served the instances of the others.
	full, served sets.Set[string]
}

// noteLeftOut notes that so many of all backends of a port have no room.
func (s *shortage) noteLeftOut(left, all int) {
	s.differ = s.differ || s.all > 0 && (left != s.left || all != s.all)
	if left > s.left {
		s.left, s.all = left, all
	}
}

// noteRefused notes which nodes with endpoints of a port cannot be backends, and which ones are.
func (s *shortage) noteRefused(full []string, set *Set) {
	if len(full) == 0 {
		return
	}
	if s.full == nil {
		s.full, s.served = sets.New[string](), sets.New[string]()
	}
	s.full.Insert(full...)
	for i := range set.Backends {
		s.served.Insert(set.Backends[i].ID)
	}
}

// Shortages says what quotas of the cloud keep from the ports that were resolved, and what to do: once for the Service, with the numbers of
// the port that lacks the most. On an NLB, each port needs a server group whoever shares the NLB, so that sharing does not help against the
// quota of instances there.
func (r *Resolver) Shortages() []problem.Problem {
	var problems []problem.Problem
	choice, s := &r.in.Choice, &r.short
	if short := choice.Lacking; short > 0 && !r.in.Pods && !r.in.Local {
		have := len(r.nodes.ready)
		if choice.Some {
			have = len(choice.Nodes)
		}
		problems = append(problems, problem.Newf(problem.ReasonQuotaReached,
			"the Service has %s as backends, and needs at least %d: an instance can be %s %d times, and all other instances have reached this quota (%s); %s",
			problem.Count(have, "node"), have+short, r.in.textFor("behind a CLB", "in a server group of an NLB"), choice.Quota,
			r.in.textFor(alicloud.QuotaCLBsPerInstance, alicloud.QuotaGroupsPerServer), r.in.moreAttachments()))
	}
	if len(s.full) > 0 {
		problems = append(problems, problem.Newf(problem.ReasonQuotaReached,
			"endpoints on %d of %d nodes get no traffic with externalTrafficPolicy Local, because the cloud does not let these instances be %s (quota %s): %s; %s",
			len(s.full), len(s.full)+len(s.served), r.in.textFor("behind more CLBs", "in more server groups of NLBs"),
			r.in.textFor(alicloud.QuotaCLBsPerInstance, alicloud.QuotaGroupsPerServer), problem.Some(sets.List(s.full)), r.in.moreAttachments()))
	}
	if s.left > 0 {
		most, group := "", r.in.textFor("vServer group", "server group")
		if s.differ {
			most = "up to "
		}
		problems = append(problems, problem.Newf(problem.ReasonQuotaReached,
			"%s%d of %d backends of a port get no traffic: the %s can have %d in all its %ss (quota %s), the Service has %s there, and others have %s; %s%s distribute the pods over several Services",
			most, s.left, s.all, r.in.textFor("CLB", "NLB"), choice.Room.Quota, group,
			r.in.textFor(alicloud.QuotaBackendsPerCLB, alicloud.QuotaServersPerNLB),
			problem.Count(choice.Room.Groups, group), problem.Count(choice.Room.Others, "backend"), alicloud.RaiseQuota,
			r.in.textFor(", use an NLB, or", ", or")))
	}
	return problems
}

// moreAttachments is what to do where instances are backends as many times as they can be.
func (in Input) moreAttachments() string {
	return alicloud.RaiseQuota + in.textFor(", use NLBs, or let several Services share a CLB", ", or use CLBs for some Services")
}

// textFor returns the text for the product.
func (in Input) textFor(clb, nlb string) string {
	if in.NLB {
		return nlb
	}
	return clb
}
