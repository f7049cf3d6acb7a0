package build

import (
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/model"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
)

// sharedLoadBalancer fills in what has to be of the load balancer. Of one that the Service shares, the annotations of the leader say that,
// and only the leader changes it.
func (b *builder) sharedLoadBalancer() {
	shared := b.in.Shared
	if shared == nil || shared.Leads {
		b.loadBalancer()
		return
	}
	own, problems := b.in, b.problems
	b.in.Params, b.in.Service, b.in.RemoveTags, b.in.LeaveGroups = shared.Params, shared.Leader, nil, nil
	b.loadBalancer()
	b.in, b.problems = own, problems // the pass over the leader reports its problems
	b.model.Want = model.Want{}
	b.problems = append(b.problems, shared.Differences(own.Params, annotation.NLBInstanceAnnotations())...)
}

// ownerTags are the tags that say whose the load balancer is.
func (b *builder) ownerTags() []alicloud.Tag {
	if b.in.Shared != nil {
		return []alicloud.Tag{{Key: mark.TagGroup, Value: b.in.Shared.Group.Mark()}}
	}
	return mark.Tags(b.in.Service, b.in.ClusterID)
}
