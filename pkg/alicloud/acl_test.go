package alicloud_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

func TestAccessLists(t *testing.T) {
	t.Parallel()
	c, ctx := newCloud(t), t.Context()
	tag := alicloud.Tag{Key: "owner", Value: "a"}
	list := alicloud.AccessList{Name: "list", IPVersion: "ipv4", ResourceGroupID: "rg-emulator", Tags: []alicloud.Tag{tag}}
	testkit.Must(c.CreateAccessList(ctx, alicloud.AccessList{Name: "other", Tags: []alicloud.Tag{{Key: "owner", Value: "b"}}}))(t)
	id := testkit.Must(c.CreateAccessList(ctx, list))(t)
	want := []alicloud.AccessList{{ID: id, Name: "list", IPVersion: "ipv4", ResourceGroupID: "rg-emulator", Tags: []alicloud.Tag{tag}}}
	if diff := cmp.Diff(want, testkit.Must(c.DescribeAccessLists(ctx, tag))(t)); diff != "" {
		t.Errorf("lists with the tag (-want +got):\n%s", diff)
	}
	var entries []string
	for i := range alicloud.MaxAccessListEntries + 10 {
		entries = append(entries, fmt.Sprintf("192.0.2.%d/32", i))
	}
	for _, chunk := range [][]string{entries[:alicloud.MaxAccessListEntries], entries[alicloud.MaxAccessListEntries:]} {
		if err := c.AddAccessListEntries(ctx, id, chunk); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(entries, testkit.Must(c.DescribeAccessList(ctx, id))(t).Entries); diff != "" {
		t.Errorf("entries over two pages (-want +got):\n%s", diff)
	}
	if err := c.RemoveAccessListEntries(ctx, id, append(slices.Clone(entries[1:40]), "198.51.100.0/24")); err != nil {
		t.Fatal(err)
	}
	left := slices.Concat(entries[:1], entries[40:])
	if diff := cmp.Diff(left, testkit.Must(c.DescribeAccessList(ctx, id))(t).Entries, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("entries after a removal (-want +got):\n%s", diff)
	}
	if err := c.DeleteAccessList(ctx, id); err != nil {
		t.Fatal(err)
	}
	if err := c.DeleteAccessList(ctx, id); !alicloud.IsNotFound(err) {
		t.Errorf("deletion of a list that is gone: %v, want not found", err)
	}
}
