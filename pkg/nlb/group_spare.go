package nlb

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/model"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/sharing"
)

// spare leaves out of what the leader of a group wants of the NLB that by which another Service there would be open to more clients than it asks for and
// has now. What was applied before stays in the Record, so that it is reverted once nobody needs it.
func (n nlb) spare(in service.Inputs, shared *sharing.Shared, desired *model.Model, record *service.Record) ([]problem.Problem, error) {
	lb, want := &n.lb.Value, &desired.Want
	if shared == nil || !shared.Leads || n.ID() == "" {
		return nil, nil
	}
	members, err := n.shared.Members(n.group, in.Service)
	var problems []problem.Problem
	keep := func(suffix annotation.Suffix, member *corev1.Service, value string) {
		problems = append(problems, problem.Newf(problem.ReasonAnnotationNoEffect, "%s has no effect: Service %s, which shares the NLB, asks for %q", suffix, mark.ServiceName(member), value))
		if slices.Contains(in.Applied.Annotations, string(suffix)) && !slices.Contains(record.Annotations, string(suffix)) {
			record.Annotations = append(slices.Clone(record.Annotations), string(suffix))
		}
	}
	becomesPublic := func(kind *string, have string) bool {
		return kind != nil && strings.EqualFold(*kind, alicloud.NLBInternet) && !strings.EqualFold(have, alicloud.NLBInternet)
	}
	for _, member := range members {
		if member.UID == in.Service.UID || n.shared.On(n.group, member) != n.ID() {
			continue
		}
		params := n.shared.ParamsOf(member)
		private, ids := params.Get(annotation.AddressType) == alicloud.AddressIntranet, annotation.ListOf(params, annotation.SecurityGroupIDs)
		if private && becomesPublic(want.AddressType, lb.AddressType) {
			want.AddressType = nil
			keep(annotation.AddressType, member, alicloud.AddressIntranet)
		}
		if (private || params.Get(annotation.IPv6AddressType) == alicloud.AddressIntranet) && becomesPublic(want.IPv6AddressType, lb.IPv6AddressType) {
			want.IPv6AddressType = nil
			keep(annotation.IPv6AddressType, member, alicloud.AddressIntranet)
		}
		if len(ids) > 0 && len(notIn(ids, lb.SecurityGroups)) == 0 && len(want.JoinGroups)+len(want.LeaveGroups) > 0 {
			want.JoinGroups, want.LeaveGroups = nil, nil
			record.SecurityGroups = slices.Compact(slices.Sorted(slices.Values(slices.Concat(record.SecurityGroups, in.Applied.SecurityGroups))))
			keep(annotation.SecurityGroupIDs, member, strings.Join(ids, ","))
		}
	}
	return problems, err
}
