package alicloud

import (
	"context"
	"strings"
)

// MaxAccessListEntries is how many entries one call that changes an access control list takes, and the largest page of
// both reads.
// Source: https://www.alibabacloud.com/help/en/slb/classic-load-balancer/developer-reference/api-slb-2014-05-15-addaccesscontrollistentry.
const MaxAccessListEntries = 50

// AccessList is an access control list (ACL): address blocks that listeners admit or refuse.
type AccessList struct {
	ID   string
	Name string
	// IPVersion is [IPv4] or [IPv6]; all entries are of it.
	IPVersion       string
	ResourceGroupID string
	// Entries are CIDR blocks, nil where only the list itself was read.
	Entries []string
	// UsedBy are the listeners that use the list, nil where only the list itself was read.
	UsedBy []ACLUser
	Tags   []Tag
}

// ACLUser is a listener that uses an access control list.
type ACLUser struct {
	LoadBalancerID string
	Listener       ListenerKey
}

// DescribeAccessLists returns the lists that have the tag, without their entries. The tag's value may be empty, then any
// value matches.
func (c *Client) DescribeAccessLists(ctx context.Context, tag Tag) ([]AccessList, error) {
	return pages("DescribeAccessControlLists", func(list AccessList) string { return list.ID }, func(number int) (page[AccessList], error) {
		in := params{}.setTags([]Tag{tag}).setInt("PageNumber", number).setInt("PageSize", MaxAccessListEntries)
		out := &describeAccessListsResponse{answer: newAnswer()}
		if err := c.call(ctx, "DescribeAccessControlLists", productSLB, in, out); err != nil {
			return page[AccessList]{}, err
		}
		var found []AccessList
		for _, wire := range out.Acls.Acl {
			found = append(found, wire.list())
		}
		return page[AccessList]{out.answer, found, out.TotalCount}, nil
	})
}

type describeAccessListsResponse struct {
	answer
	TotalCount *int
	Acls       struct{ Acl []answeredList }
}

type answeredList struct {
	AclId, AclName, AddressIPVersion, ResourceGroupId string
	Tags                                              struct {
		Tag []struct{ TagKey, TagValue string }
	}
}

func (w *answeredList) list() AccessList {
	list := AccessList{ID: w.AclId, Name: w.AclName, IPVersion: w.AddressIPVersion, ResourceGroupID: w.ResourceGroupId}
	for _, tag := range w.Tags.Tag {
		list.Tags = append(list.Tags, Tag{Key: tag.TagKey, Value: tag.TagValue})
	}
	return list
}

// DescribeAccessList returns a list with its entries, or an error for which [IsNotFound] holds.
func (c *Client) DescribeAccessList(ctx context.Context, id string) (AccessList, error) {
	var list AccessList
	entries, err := pages("DescribeAccessControlListAttribute", func(entry string) string {
		return entry
	}, func(number int) (page[string], error) {
		in := params{"AclId": id}.setInt("Page", number).setInt("PageSize", MaxAccessListEntries)
		out := &describeAccessListResponse{answer: newAnswer()}
		if err := c.call(ctx, "DescribeAccessControlListAttribute", productSLB, in, out); err != nil {
			return page[string]{}, err
		}
		if out.AclId != id {
			return page[string]{}, out.unusable("DescribeAccessControlListAttribute", "asked for %q, got %q", id, out.AclId)
		}
		list = out.list()
		list.UsedBy = out.usedBy()
		var entries []string
		for _, entry := range out.AclEntrys.AclEntry {
			entries = append(entries, entry.AclEntryIP)
		}
		return page[string]{out.answer, entries, out.TotalAclEntry}, nil
	})
	list.Entries = entries
	return list, err
}

type describeAccessListResponse struct {
	answer
	answeredList
	TotalAclEntry *int
	AclEntrys     struct{ AclEntry []struct{ AclEntryIP string } }

	RelatedListeners struct {
		RelatedListener []struct {
			LoadBalancerId, Protocol string
			ListenerPort             int
		}
	}
}

// usedBy returns the listeners that use the list. Every page names all of them.
func (r *describeAccessListResponse) usedBy() []ACLUser {
	var users []ACLUser
	for _, wire := range r.RelatedListeners.RelatedListener {
		users = append(users, ACLUser{wire.LoadBalancerId, ListenerKey{Protocol: strings.ToLower(wire.Protocol), Port: wire.ListenerPort}})
	}
	return users
}

// CreateAccessList makes an empty list with the name, family, resource group and tags of list and returns its id. The
// action takes no client token: after an ambiguous error the list may exist.
func (c *Client) CreateAccessList(ctx context.Context, list AccessList) (string, error) {
	in := params{"AclName": list.Name}.
		set("AddressIPVersion", list.IPVersion).set("ResourceGroupId", list.ResourceGroupID).setTags(list.Tags)
	out := &createAccessListResponse{answer: newAnswer()}
	if err := c.call(ctx, "CreateAccessControlList", productSLB, in, out); err != nil {
		return "", err
	}
	return out.AclId, nil
}

type createAccessListResponse struct {
	answer
	AclId string
}

// AddAccessListEntries adds up to [MaxAccessListEntries] CIDR blocks. One that the list has already fails the whole call.
func (c *Client) AddAccessListEntries(ctx context.Context, id string, entries []string) error {
	return c.accessListWrite(ctx, "AddAccessControlListEntry", id, entries)
}

// RemoveAccessListEntries removes up to [MaxAccessListEntries] CIDR blocks; those that the list lacks are ignored.
func (c *Client) RemoveAccessListEntries(ctx context.Context, id string, entries []string) error {
	return c.accessListWrite(ctx, "RemoveAccessControlListEntry", id, entries)
}

// DeleteAccessList removes a list that no listener uses any more.
func (c *Client) DeleteAccessList(ctx context.Context, id string) error {
	return c.slbWrite(ctx, "DeleteAccessControlList", params{"AclId": id})
}

func (c *Client) accessListWrite(ctx context.Context, action, id string, entries []string) error {
	type wireEntry struct {
		Entry string `json:"entry"`
	}
	wire := make([]wireEntry, len(entries))
	for i, entry := range entries {
		wire[i].Entry = entry
	}
	return c.slbWrite(ctx, action, params{"AclId": id}.setJSON("AclEntrys", wire))
}
