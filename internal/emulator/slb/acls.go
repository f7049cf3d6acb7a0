package slb

import (
	"encoding/json"
	"net/netip"
	"slices"
	"strings"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

// aclPage is the largest page of both ACL lists.
const aclPage = 50

func (s service) aclActions() []api.Action {
	id, version := api.Str("AclId", api.Required), api.Str("AddressIPVersion", api.OneOf("ipv4", "ipv6"))
	entries := []api.Param{id, api.JSONArray("AclEntrys", api.Required)}
	return []api.Action{
		{Name: "CreateAccessControlList", Kind: api.Write,
			Params: []api.Param{api.Str("AclName", api.Required, api.Len(1, 80)), version, api.Str("ResourceGroupId"),
				cloud.TagParams(cloud.MaxTags)}, Run: s.createACL},
		{Name: "DescribeAccessControlLists", Kind: api.Read,
			Params: append(api.Numbered(aclPage), api.Str("AclName"), version, api.Str("ResourceGroupId"), cloud.TagParams(cloud.MaxTags)),
			Run:    s.describeACLs},
		{Name: "DescribeAccessControlListAttribute", Kind: api.Read,
			Params: []api.Param{id, api.Str("AclEntryComment"), api.Num("Page", 1, 0), api.Num("PageSize", 1, aclPage)}, Run: s.describeACL},
		{Name: "AddAccessControlListEntry", Kind: api.Write, Params: entries, Run: s.addACLEntries},
		{Name: "RemoveAccessControlListEntry", Kind: api.Write, Params: entries, Run: s.removeACLEntries},
		{Name: "DeleteAccessControlList", Kind: api.Write, Params: []api.Param{id}, Run: s.deleteACL},
	}
}

func aclNotExist(id string) *api.Error {
	return api.BadRequest("AclNotExist", "The specified acl %s does not exist.", id)
}

func (s service) acl(c *api.Call) (*cloud.ACL, error) {
	a, ok := s.ACLs.Get(c.Str("AclId"))
	if !ok || !c.Finds(a.Created) {
		return nil, aclNotExist(c.Str("AclId"))
	}
	return a, nil
}

func (s service) createACL(c *api.Call) (any, error) {
	if s.ACLs.Len() >= s.Limits.ACLs {
		return nil, api.BadRequest("QuotaLimitExceeds.AclNumber", "The account has %d access control lists, which is its quota.", s.ACLs.Len())
	}
	a := &cloud.ACL{
		Object: s.NewObject("acl"), Name: c.Str("AclName"), IPVersion: c.Or("AddressIPVersion", "ipv4"),
		ResourceGroupID: c.Or("ResourceGroupId", "rg-emulator"),
	}
	a.Tags = a.Tags.With(cloud.TagsIn(c))
	s.ACLs.Add(a)
	return struct{ AclId string }{a.ID}, nil //nolint:revive // names on the wire
}

type aclView struct { //nolint:revive // names on the wire
	AclId, AclName, AddressIPVersion, ResourceGroupId, CreateTime string
	Tags                                                          tagList
}

func newACLView(a *cloud.ACL) aclView {
	return aclView{a.ID, a.Name, a.IPVersion, a.ResourceGroupID, cloud.Timestamp(a.Created), tagList{a.Tags.Views()}}
}

func (s service) describeACLs(c *api.Call) (any, error) {
	tags := cloud.TagsIn(c)
	all := s.ACLs.Select(func(a *cloud.ACL) bool {
		return (!c.Has("AclName") || c.Str("AclName") == a.Name) && (!c.Has("AddressIPVersion") || c.Str("AddressIPVersion") == a.IPVersion) &&
			(!c.Has("ResourceGroupId") || c.Str("ResourceGroupId") == a.ResourceGroupID) &&
			cloud.Searched(c, a.Object, a.Tagged, cloud.HavingAll(tags)) && c.Sees(a.Created)
	})
	count := api.Field{Name: "Count", Value: len(api.PageOf(c, all, aclPage).Items)}
	return append(api.NumberedList(c, all, aclPage, "Acls", "Acl", newACLView), count), nil
}

type aclEntryView struct{ AclEntryIP, AclEntryComment string }

type relatedListener struct { //nolint:revive // names on the wire
	LoadBalancerId    string
	ListenerPort      int
	Protocol, AclType string
}

type aclDetail struct { //nolint:revive // names on the wire
	AclId, AclName, AddressIPVersion, ResourceGroupId string
	TotalAclEntry                                     int
	AclEntrys                                         struct{ AclEntry []aclEntryView }
	RelatedListeners                                  struct{ RelatedListener []relatedListener }
	Tags                                              tagList
}

// aclDetail describes a list with its entries; a comment selects entries, "" takes all.
func (s service) aclDetail(a *cloud.ACL, comment string) aclDetail {
	d := aclDetail{AclId: a.ID, AclName: a.Name, AddressIPVersion: a.IPVersion, ResourceGroupId: a.ResourceGroupID,
		TotalAclEntry: len(a.Entries)}
	d.AclEntrys.AclEntry = []aclEntryView{}
	for _, e := range a.Entries {
		if comment == "" || comment == e.Comment {
			d.AclEntrys.AclEntry = append(d.AclEntrys.AclEntry, aclEntryView{e.CIDR, e.Comment})
		}
	}
	d.RelatedListeners.RelatedListener = []relatedListener{}
	for _, b := range s.ListenersWithACL(a.ID) {
		d.RelatedListeners.RelatedListener = append(d.RelatedListeners.RelatedListener,
			relatedListener{b.LoadBalancer.ID, b.Port, b.Protocol, b.Attributes["AclType"]})
	}
	d.Tags.Tag = a.Tags.Views()
	return d
}

func (s service) describeACL(c *api.Call) (any, error) {
	a, err := s.acl(c)
	if err != nil {
		return nil, err
	}
	d := s.aclDetail(a, c.Str("AclEntryComment"))
	all, size := d.AclEntrys.AclEntry, c.Int("PageSize", aclPage)
	from := min((c.Int("Page", 1)-1)*size, len(all))
	d.AclEntrys.AclEntry = all[from:min(from+size, len(all))]
	return d, nil
}

// parseACLEntries reads the entries of a call, at most the number that one call may carry.
func (s service) parseACLEntries(c *api.Call) ([]cloud.ACLEntry, *api.Error) {
	var wire []struct{ Entry, Comment string }
	if err := json.Unmarshal([]byte(c.Str("AclEntrys")), &wire); err != nil {
		return nil, api.Invalid("AclEntrys", "not an array of entry and comment")
	}
	if len(wire) > s.Limits.ACLEntriesPerCall {
		return nil, api.Invalid("AclEntrys", "%d entries are more than %d", len(wire), s.Limits.ACLEntriesPerCall)
	}
	entries := make([]cloud.ACLEntry, 0, len(wire))
	for _, w := range wire {
		prefix, err := netip.ParsePrefix(w.Entry)
		if addr, addrErr := netip.ParseAddr(w.Entry); err != nil && addrErr == nil {
			prefix, err = netip.PrefixFrom(addr, addr.BitLen()), nil
		}
		if err != nil {
			return nil, api.Invalid("AclEntrys", "%q is neither an address nor a CIDR block", w.Entry)
		}
		entries = append(entries, cloud.ACLEntry{CIDR: prefix.String(), Comment: w.Comment})
	}
	return entries, nil
}

func (s service) addACLEntries(c *api.Call) (any, error) {
	a, err := s.acl(c)
	if err != nil {
		return nil, err
	}
	entries, bad := s.parseACLEntries(c)
	if bad != nil {
		return nil, bad
	}
	merged := slices.Clone(a.Entries)
	for _, e := range entries {
		if strings.Contains(e.CIDR, ":") != (a.IPVersion == "ipv6") {
			return nil, api.BadRequest("IllegalEntry", "The entry %s is not of the IP version of the list.", e.CIDR)
		}
		same := func(have cloud.ACLEntry) bool { return have.CIDR == e.CIDR }
		if slices.ContainsFunc(a.Entries, same) {
			return nil, api.BadRequest("InvalidParam.AclEntryExists", "The list has the entry %s already.", e.CIDR)
		}
		// A call may have an entry twice.
		if !slices.ContainsFunc(merged, same) {
			merged = append(merged, e)
		}
	}
	if len(merged) > s.Limits.ACLEntries {
		return nil, api.BadRequest("QuotaLimitExceeds.TotalAclEntry", "A list has at most %d entries.", s.Limits.ACLEntries)
	}
	a.Entries = merged
	return done()
}

func (s service) removeACLEntries(c *api.Call) (any, error) {
	a, err := s.acl(c)
	if err != nil {
		return nil, err
	}
	entries, bad := s.parseACLEntries(c)
	if bad != nil {
		return nil, bad
	}
	a.Entries = slices.DeleteFunc(slices.Clone(a.Entries), func(have cloud.ACLEntry) bool {
		return slices.ContainsFunc(entries, func(e cloud.ACLEntry) bool { return e.CIDR == have.CIDR })
	})
	return done()
}

func (s service) deleteACL(c *api.Call) (any, error) {
	a, err := s.acl(c)
	if err != nil {
		return nil, err
	}
	if users := s.ListenersWithACL(a.ID); len(users) > 0 {
		return nil, api.BadRequest("OperationFailed.AclBindedWithVip", "The list is in use by %d listeners.", len(users))
	}
	s.ACLs.Delete(a)
	return done()
}

// checkACLs checks the lists that a listener is to use.
func (s service) checkACLs(lb *cloud.LoadBalancer, have, want api.Params) *api.Error {
	if want["AclId"] == "" || want["AclId"] == have["AclId"] {
		return nil
	}
	for id := range strings.SplitSeq(want["AclId"], ",") {
		a, ok := s.ACLs.Get(id)
		switch {
		case !ok:
			return aclNotExist(id)
		case a.IPVersion != lb.IPVersion:
			return api.BadRequest("IpVersionConflict", "The list %s is not of the IP version of the load balancer.", id)
		case len(s.ListenersWithACL(id)) >= s.Limits.ListenersPerACL:
			return api.BadRequest("QuotaLimitExceeds.AclAttachedToListener", "The list %s is on %d listeners, which is its quota.", id,
				s.Limits.ListenersPerACL)
		}
	}
	return nil
}
