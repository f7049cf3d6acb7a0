package slb

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

// Page sizes of DescribeLoadBalancers. The default is assumed: no document states it.
const (
	pageLimit   = 100
	defaultPage = 50
	maxFilter   = 10
)

func describeParams() []api.Param {
	return append(api.Numbered(pageLimit),
		api.Str("LoadBalancerId"), api.Str("LoadBalancerName"), api.Str("Address"), api.Str("AddressType", api.OneOf("internet", "intranet")),
		api.Str("AddressIPVersion", api.OneOf("ipv4", "ipv6")), api.Str("VpcId"), api.Str("VSwitchId"),
		api.Str("NetworkType", api.OneOf("vpc", "classic")), api.Str("ServerId"),
		api.Str("LoadBalancerStatus", api.OneOf(cloud.Active, cloud.Inactive, cloud.Locked)), api.Str("InternetChargeType"),
		api.Str("InstanceChargeType", api.OneOf(payBySpec, payByCLCU)), api.Str("MasterZoneId"), api.Str("SlaveZoneId"),
		api.Str("ResourceGroupId"), api.JSONArray("Tags"), cloud.TagParams(maxFilter), api.Str("Fuzzy"))
}

func (s service) describe(c *api.Call) (any, error) {
	f, err := newFilter(c)
	if err != nil {
		return nil, err
	}
	all := s.LoadBalancers.Select(func(lb *cloud.LoadBalancer) bool {
		return f.matches(lb, c) && (!c.Has("ServerId") || s.hasServer(lb, c.Str("ServerId")))
	})
	page := defaultPage
	if !c.Has("PageSize") && !c.Holds("slb.default-page") {
		page = 10
	}
	return api.NumberedList(c, all, page, "LoadBalancers", "LoadBalancer", func(lb *cloud.LoadBalancer) listView {
		return s.listView(lb, c)
	}), nil
}

// filter holds the list filters of one call, read once.
type filter struct {
	ids []string
	// A CLB has one of anyTag, the tags of the old JSON filter, as clients in production assume, and all of allTags, those of Tag.N.
	anyTag  cloud.Tags
	allTags cloud.Tags
}

func newFilter(c *api.Call) (filter, error) {
	f := filter{allTags: cloud.TagsIn(c)}
	if c.Has("LoadBalancerId") {
		f.ids = strings.Split(c.Str("LoadBalancerId"), ",")
	}
	if c.Has("Tags") {
		var old []struct{ TagKey, TagValue string }
		if err := json.Unmarshal([]byte(c.Str("Tags")), &old); err != nil {
			return f, api.Invalid("Tags", "not an array of TagKey and TagValue")
		}
		for _, t := range old {
			f.anyTag = append(f.anyTag, cloud.Tag{Key: t.TagKey, Value: t.TagValue})
		}
	}
	if len(f.anyTag) > 1 && !c.Holds("slb.tags-any") {
		f.anyTag, f.allTags = nil, append(f.anyTag, f.allTags...)
	}
	if len(f.anyTag)+len(f.allTags) > 0 {
		c.Holds("slb.tag-search-current")
	}
	if len(f.ids) > maxFilter {
		return f, api.Invalid("LoadBalancerId", "%d ids are more than %d", len(f.ids), maxFilter)
	}
	if len(f.anyTag) > maxFilter {
		return f, api.Invalid("Tags", "%d tags are more than %d", len(f.anyTag), maxFilter)
	}
	return f, nil
}

func (f filter) matches(lb *cloud.LoadBalancer, c *api.Call) bool {
	if len(f.ids) > 0 && !slices.Contains(f.ids, lb.ID) {
		return false
	}
	equal := []struct{ param, have string }{
		{"LoadBalancerName", lb.Name}, {"Address", lb.Address}, {"AddressType", lb.AddressType}, {"AddressIPVersion", lb.IPVersion},
		{"VpcId", lb.VPCID}, {"VSwitchId", lb.VSwitchID}, {"NetworkType", lb.NetworkType}, {"LoadBalancerStatus", lb.Status},
		{"InternetChargeType", lb.ChargeTypeAt(c.Now)}, {"InstanceChargeType", lb.InstanceChargeType}, {"MasterZoneId", lb.MasterZoneID},
		{"SlaveZoneId", lb.SlaveZoneID}, {"ResourceGroupId", lb.ResourceGroupID},
	}
	for _, e := range equal {
		if c.Has(e.param) && c.Str(e.param) != e.have {
			return false
		}
	}
	tagged := len(f.anyTag)+len(f.allTags) == 0 ||
		cloud.Searched(c, lb.Object, lb.Tagged, func(tags cloud.Tags) bool { return cloud.HavingAny(f.anyTag)(tags) && tags.Match(f.allTags) })
	return tagged && c.Sees(lb.Created)
}

func (s service) hasServer(lb *cloud.LoadBalancer, id string) bool {
	for _, gid := range lb.Groups {
		g, ok := s.ServerGroups.Get(gid)
		if ok && slices.ContainsFunc(g.Backends, func(b cloud.Backend) bool { return b.ServerID == id }) {
			return true
		}
	}
	return false
}

func (s service) describeAttribute(c *api.Call) (any, error) {
	lb, err := s.loadBalancer(c)
	if err != nil {
		return nil, err
	}
	c.Holds("slb.reads-current")
	return s.attributeView(lb, c), nil
}
