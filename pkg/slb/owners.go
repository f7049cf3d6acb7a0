package slb

import (
	"slices"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/model"
)

// keepOwnersTags leaves out of what is wanted, and of the Record, tags that are the owner's of an existing CLB.
func (e *engine) keepOwnersTags(
	desired *model.Model, record *service.Record, applied service.Record, actual *model.Model,
) ([]problem.Problem, error) {
	if actual == nil || !actual.Reused || len(desired.LoadBalancer.Tags) <= 1 && len(record.TagKeys) == 0 {
		return nil, nil
	}
	owners, err := service.OwnersTagsOf(actual.LoadBalancer.ID, actual.LoadBalancer.Tags, desired.Override, e.services, applied)
	if err != nil {
		return nil, err
	}
	record.TagKeys = slices.DeleteFunc(slices.Clone(record.TagKeys), owners.Has)
	isMark := func(tag alicloud.Tag) bool { return tag.Key == mark.TagReused }
	marks := slices.DeleteFunc(slices.Clone(desired.LoadBalancer.Tags), func(tag alicloud.Tag) bool { return !isMark(tag) })
	ours, problems := owners.Ours(slices.DeleteFunc(slices.Clone(desired.LoadBalancer.Tags), isMark))
	desired.LoadBalancer.Tags = slices.Concat(marks, ours)
	return problems, nil
}
