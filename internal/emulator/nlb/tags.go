package nlb

import (
	"slices"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

const (
	// maxTagged is how many resources one call may name.
	maxTagged = 50
	// tagPage is the page size of ListTagResources.
	tagPage = 50
)

func (s service) tagActions() []api.Action {
	kind := api.Str("ResourceType", api.Required, api.OneOfAnyCase("loadbalancer", "servergroup", "listener", "securitypolicy"))
	ids := api.ListOf("ResourceId", maxTagged)
	tags := required(api.ObjectsOf("Tag", cloud.MaxTags, api.Str("Key", api.Required, api.Len(1, 64)), api.Str("Value", api.Len(0, 128))))
	return []api.Action{
		{Name: "TagResources", Kind: api.Write, Params: write(kind, required(ids), tags), Run: s.tagResources},
		{Name: "UntagResources", Kind: api.Write, Params: write(kind, required(ids), api.ListOf("TagKey", cloud.MaxTags), api.Flag("All")),
			Run: s.untagResources},
		{Name: "ListTagResources", Kind: api.Read, Params: append(api.Tokened("MaxResults", tagPage), kind, ids, cloud.TagParams(cloud.MaxTags)),
			Run: s.listTagResources},
	}
}

// tagged finds one resource of the call's type.
func (s service) tagged(c *api.Call, id string) (*cloud.Tagged, bool) {
	switch c.Str("ResourceType") {
	case "loadbalancer":
		if lb, ok := s.NLBs.Get(id); ok && lb.Phase.At(c.Now) != "" {
			return &lb.Tagged, true
		}
	case "servergroup":
		if g, ok := s.NLBGroups.Get(id); ok && g.Phase.At(c.Now) != "" {
			return &g.Tagged, true
		}
	case "listener":
		if l, ok := s.NLBListeners.Get(id); ok && l.Phase.At(c.Now) != "" {
			return &l.Tagged, true
		}
	}
	return nil, false
}

// change replaces the tags of all resources of the call, or of none where one cannot have them.
func (s service) retag(c *api.Call, change func(cloud.Tags) cloud.Tags) (any, error) {
	var resources []*cloud.Tagged
	for _, id := range c.List("ResourceId") {
		r, ok := s.tagged(c, id)
		if !ok {
			return nil, notFound("ResourceId", id)
		}
		if len(change(r.Tags)) > cloud.MaxTags {
			return nil, api.BadRequest("QuotaExceeded.TagsPerResource", "A resource has at most %d tags.", cloud.MaxTags)
		}
		resources = append(resources, r)
	}
	for _, r := range resources {
		r.SetTags(change(r.Tags), c.Now)
	}
	return done()
}

func (s service) tagResources(c *api.Call) (any, error) {
	if bad := checkTags(c); bad != nil {
		return nil, bad
	}
	return s.retag(c, func(tags cloud.Tags) cloud.Tags {
		tags = tags.With(cloud.TagsIn(c))
		return tags
	})
}

func (s service) untagResources(c *api.Call) (any, error) {
	keys, all := c.List("TagKey"), c.Bool("All", false)
	return s.retag(c, func(tags cloud.Tags) cloud.Tags {
		return slices.DeleteFunc(slices.Clone(tags), func(t cloud.Tag) bool { return all || slices.Contains(keys, t.Key) })
	})
}

func (s service) listTagResources(c *api.Call) (any, error) {
	type view struct { //nolint:revive // names on the wire
		ResourceId, ResourceType, TagKey, TagValue string
	}
	ids, want := c.List("ResourceId"), cloud.TagsIn(c)
	if len(ids) == 0 && len(want) == 0 {
		return nil, api.Missing("ResourceId.N")
	}
	if len(ids) == 0 {
		ids = s.taggedIDs(c.Str("ResourceType"))
	}
	var all []view
	for _, id := range ids {
		r, ok := s.tagged(c, id)
		if !ok || !r.Tags.Match(want) {
			continue
		}
		for _, t := range r.Tags {
			all = append(all, view{id, c.Str("ResourceType"), t.Key, t.Value})
		}
	}
	return listedInPlace(c, "TagResources", all, c.Int("MaxResults", tagPage))
}

func (s service) taggedIDs(kind string) []string {
	switch kind {
	case "loadbalancer":
		return s.NLBs.IDs()
	case "servergroup":
		return s.NLBGroups.IDs()
	case "listener":
		return s.NLBListeners.IDs()
	}
	return nil
}
