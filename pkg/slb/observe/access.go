package observe

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/model"
)

// AccessList returns the list of the Service with its entries, nil when there is none. known are ids that may be the list's, and expected
// says that there should be one: that one search by tag finds nothing does not prove that there is none, because tags are indexed
// late and people remove them. missing says that the cloud denies one of the ids, which one answer does not prove.
func AccessList(
	ctx context.Context, api Reader, svc *corev1.Service, known []string, expected bool,
) (list *alicloud.AccessList, missing bool, err error) {
	lists, err := accessListsOf(ctx, api, svc)
	if err == nil && len(lists) == 0 && len(known) == 0 && expected {
		lists, err = accessListsOf(ctx, api, svc)
	}
	if err != nil {
		return nil, false, err
	}
	if len(lists) > 0 {
		id := lists[max(0, slices.IndexFunc(lists, func(l alicloud.AccessList) bool { return slices.Contains(known, l.ID) }))].ID
		list, err := api.DescribeAccessList(ctx, id)
		if err != nil {
			return nil, false, fmt.Errorf("read the access control list %s: %w", id, err)
		}
		return &list, false, nil
	}
	for _, id := range known {
		list, err := api.DescribeAccessList(ctx, id)
		switch {
		case alicloud.IsNotFound(err):
			missing = true
		case err != nil:
			return nil, false, fmt.Errorf("read the access control list %s: %w", id, err)
		case list.Name == model.AccessListName(svc.UID):
			return &list, false, nil
		}
	}
	return nil, missing, nil
}

// accessListsOf returns the lists of the Service. One in the answer that does not show the tag of the Service does not count: what is
// written to it changes who is admitted.
func accessListsOf(ctx context.Context, api Reader, svc *corev1.Service) ([]alicloud.AccessList, error) {
	owned := alicloud.Tag{Key: mark.TagOwner, Value: mark.DefaultName(svc.UID)}
	lists, err := api.DescribeAccessLists(ctx, owned)
	if err != nil {
		return nil, fmt.Errorf("find the access control list of the Service: %w", err)
	}
	return slices.DeleteFunc(lists, func(l alicloud.AccessList) bool { return !slices.Contains(l.Tags, owned) }), nil
}
