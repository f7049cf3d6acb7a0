package nlb

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/model"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/sharing"
)

// leaveOutOfPlan leaves out of what the leader of a group wants of the NLB that by which another Service there would be open to more
// clients than it asks for and has now. It fails where the NLB therefore stays out of security groups that the leader itself relies on.
func (n nlb) leaveOutOfPlan(
	in driver.Inputs, shared *sharing.Shared, desired *model.Model, record *driver.Record,
) ([]problem.Problem, error) {
	if shared == nil || !shared.Leads || n.ID() == "" {
		return nil, nil
	}
	members, err := n.shared.Members(n.Group, in.Service)
	if err != nil {
		return nil, err
	}
	spared := leaderWants{lb: &n.lb.Value, want: &desired.Want, record: record, applied: in.Applied}
	for _, member := range members {
		if member.UID != in.Service.UID && n.shared.On(n.Group, member) == n.ID() {
			name, params := mark.ServiceName(member), n.shared.ParamsOf(member)
			spared.keepPrivate(name, params)
			spared.securityGroups(name, params)
		}
	}
	return spared.problems, n.outOfGroups(in, desired.Want.JoinGroups)
}

// outOfGroups fails if the Service would get its first listener on an NLB that is not in the security groups that it names, and does not
// join them.
func (n nlb) outOfGroups(in driver.Inputs, joins []string) error {
	lacks := annotation.NotIn(annotation.ListOf(in.Params, annotation.SecurityGroupIDs), slices.Concat(n.lb.Value.SecurityGroups, joins))
	if len(lacks) == 0 || n.hasListener(in.Service) {
		return nil
	}
	return &problem.ConfigError{Field: annotation.Group.Key(), Event: problem.ReasonLoadBalancerNotReusable, Reason: fmt.Sprintf(
		"the Service restricts its clients by %s, and NLB %s stays out of %s because of another Service there; choose another group",
		annotation.SecurityGroupIDs, n.ID(), problem.Some(lacks))}
}

// leaderWants is what the leader of a group wants of its NLB. What was applied before stays in the Record, so that it is reverted once
// nobody needs it.
type leaderWants struct {
	lb       *alicloud.NLB
	want     *model.Want
	record   *driver.Record
	applied  driver.Record
	problems []problem.Problem
}

// keepPrivate keeps an NLB private for a Service that asks for that.
func (s *leaderWants) keepPrivate(name types.NamespacedName, params annotation.Params) {
	private := params.Get(annotation.AddressType) == alicloud.AddressIntranet
	if private && becomesPublic(s.want.AddressType, s.lb.AddressType) {
		s.want.AddressType = nil
		s.keepValue(annotation.AddressType, name, alicloud.AddressIntranet)
	}
	private = private || params.Get(annotation.IPv6AddressType) == alicloud.AddressIntranet
	if private && becomesPublic(s.want.IPv6AddressType, s.lb.IPv6AddressType) {
		s.want.IPv6AddressType = nil
		s.keepValue(annotation.IPv6AddressType, name, alicloud.AddressIntranet)
	}
}

func becomesPublic(want *string, have string) bool {
	return want != nil && strings.EqualFold(*want, alicloud.NLBInternet) && !strings.EqualFold(have, alicloud.NLBInternet)
}

// securityGroups keeps an NLB in the security groups that a Service names, and out of others, whose rules may let more clients in.
func (s *leaderWants) securityGroups(name types.NamespacedName, params annotation.Params) {
	ids := annotation.ListOf(params, annotation.SecurityGroupIDs)
	if len(ids) == 0 || len(annotation.NotIn(ids, s.lb.SecurityGroups)) > 0 || len(s.want.JoinGroups)+len(s.want.LeaveGroups) == 0 {
		return
	}
	s.want.JoinGroups, s.want.LeaveGroups = nil, nil
	s.record.SecurityGroups = slices.Compact(slices.Sorted(slices.Values(slices.Concat(s.record.SecurityGroups, s.applied.SecurityGroups))))
	s.keepValue(annotation.SecurityGroupIDs, name, strings.Join(ids, ","))
}

func (s *leaderWants) keepValue(suffix annotation.Suffix, name types.NamespacedName, value string) {
	s.problems = append(s.problems,
		problem.Newf(problem.ReasonAnnotationNoEffect, "%s has no effect: Service %s, which shares the NLB, asks for %q", suffix, name, value))
	if slices.Contains(s.applied.Annotations, string(suffix)) && !slices.Contains(s.record.Annotations, string(suffix)) {
		s.record.Annotations = append(slices.Clone(s.record.Annotations), string(suffix))
	}
}
