package observe

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
)

// AccessList returns the list of the Service with its entries, nil when there is none.
func AccessList(ctx context.Context, api Reader, svc *corev1.Service) (*alicloud.AccessList, error) {
	lists, err := api.DescribeAccessLists(ctx, alicloud.Tag{Key: mark.TagOwner, Value: mark.DefaultName(svc.UID)})
	if err != nil {
		return nil, fmt.Errorf("find the access control list of the Service: %w", err)
	}
	if len(lists) == 0 {
		return nil, nil
	}
	list := lists[0]
	list.Entries, err = api.DescribeAccessListEntries(ctx, list.ID)
	if alicloud.IsNotFound(err) {
		return nil, nil // went between the two reads
	}
	if err != nil {
		return nil, fmt.Errorf("read the access control list %s: %w", list.ID, err)
	}
	return &list, nil
}
