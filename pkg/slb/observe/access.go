package observe

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
)

// AccessList returns the list of the Service with its entries, nil when there is none. expected says that there should be one: then
// one empty answer does not prove that there is none, and it is asked for again.
func AccessList(ctx context.Context, api Reader, svc *corev1.Service, expected bool) (*alicloud.AccessList, error) {
	lists, err := accessListsOf(ctx, api, svc)
	if err == nil && len(lists) == 0 && expected {
		lists, err = accessListsOf(ctx, api, svc)
	}
	if err != nil || len(lists) == 0 {
		return nil, err
	}
	list := lists[0]
	list.Entries, err = api.DescribeAccessListEntries(ctx, list.ID)
	if err != nil {
		return nil, fmt.Errorf("read the access control list %s: %w", list.ID, err)
	}
	return &list, nil
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
