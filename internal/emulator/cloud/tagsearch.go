package cloud

import (
	"slices"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
)

// MaxTags is how many tags one resource, and one filter by tags, may have.
const MaxTags = 20

// TagParams are the rules of the tags that a call names, for a resource or as a filter.
func TagParams(limit int) api.Param {
	return api.ObjectsOf("Tag", limit, api.Str("Key", api.Len(0, 128)), api.Str("Value", api.Len(0, 128)))
}

// TagsIn returns the tags that a call names.
func TagsIn(c *api.Call) Tags {
	var tags Tags
	for _, o := range c.Objects("Tag") {
		tags = append(tags, Tag{Key: o.Str("Key"), Value: o.Str("Value")})
	}
	return tags
}

// Searched reports whether the tags that a search sees of a resource match. What a search does not see yet, the call notes as hidden.
func Searched(c *api.Call, o Object, t Tagged, match func(Tags) bool) bool {
	if c.TagSearchLag == 0 {
		return match(t.Tags)
	}
	moment, seen := c.Now.Add(-c.TagSearchLag), Tags(nil)
	if !o.Created.After(moment) {
		seen = t.TagsAt(moment)
	}
	found := match(seen)
	c.Hidden = c.Hidden || !found && match(t.Tags)
	return found
}

// HavingAll makes a match of those that have all the tags.
func HavingAll(want Tags) func(Tags) bool {
	return func(tags Tags) bool { return tags.Match(want) }
}

// HavingAny makes a match of those that have one of the tags; without any, all match.
func HavingAny(want Tags) func(Tags) bool {
	return func(tags Tags) bool {
		return len(want) == 0 || slices.ContainsFunc(want, func(w Tag) bool { return tags.Match(Tags{w}) })
	}
}

// TagView carries both spellings: CLB and ECS answer with TagKey, VPC with Key, and clients of one product read the other's.
type TagView struct{ TagKey, TagValue, Key, Value string }

// Views returns the tags as answers show them.
func (t Tags) Views() []TagView {
	views := make([]TagView, 0, len(t))
	for _, tag := range t {
		views = append(views, TagView{tag.Key, tag.Value, tag.Key, tag.Value})
	}
	return views
}
