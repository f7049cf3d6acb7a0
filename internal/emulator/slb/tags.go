package slb

import (
	"slices"
	"strconv"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

// maxTagged is how many resources one tag call may name.
const maxTagged = 50

// tagPage is the page size of ListTagResources.
const tagPage = 50

func (s service) tagActions() []api.Action {
	kind := api.Str("ResourceType", api.Required, api.OneOf("instance", "vservergroup", "certificate", "acl"))
	ids := api.ListOf("ResourceId", maxTagged, api.Required)
	tags := api.ObjectsOf("Tag", cloud.MaxTags, api.Str("Key", api.Required, api.Len(1, 128)), api.Str("Value", api.Len(0, 128)))
	api.Required(&tags)
	return []api.Action{
		{Name: "TagResources", Kind: api.Write, Params: []api.Param{kind, ids, tags}, Run: s.tagResources},
		{Name: "UntagResources", Kind: api.Write, Params: []api.Param{kind, ids, api.ListOf("TagKey", cloud.MaxTags), api.Flag("All")},
			Run: s.untagResources},
		{Name: "ListTagResources", Kind: api.Read,
			Params: []api.Param{kind, api.ListOf("ResourceId", maxTagged), cloud.TagParams(cloud.MaxTags), api.Str("NextToken")},
			Run:    s.listTagResources},
	}
}

// target is a resource that has tags.
type target struct {
	cloud.Object
	*cloud.Tagged
}

// tagged finds one resource of the call's type.
func (s service) tagged(kind, id string) (target, bool) {
	switch kind {
	case "vservergroup":
		if g, ok := s.ServerGroups.Get(id); ok {
			return target{g.Object, &g.Tagged}, true
		}
	case "certificate":
		if c, ok := s.Certificates.Get(id); ok {
			return target{c.Object, &c.Tagged}, true
		}
	case "acl":
		if a, ok := s.ACLs.Get(id); ok {
			return target{a.Object, &a.Tagged}, true
		}
	default:
		if lb, ok := s.LoadBalancers.Get(id); ok {
			return target{lb.Object, &lb.Tagged}, true
		}
	}
	return target{}, false
}

// targets finds all named resources, or fails for the first unknown one.
func (s service) targets(c *api.Call) ([]target, error) {
	var targets []target
	for _, id := range c.List("ResourceId") {
		t, ok := s.tagged(c.Str("ResourceType"), id)
		if !ok || !c.Finds(t.Created) {
			return nil, resourceNotFound(c.Str("ResourceType"), id)
		}
		targets = append(targets, t)
	}
	return targets, nil
}

// resourceNotFound is the answer for a resource that cannot be tagged because it is not there.
func resourceNotFound(kind, id string) *api.Error {
	if kind == "instance" {
		return lbNotFound()
	}
	return api.NotFound("InvalidResourceId.NotFound", "The specified resource %s does not exist.", id)
}

func (s service) tagResources(c *api.Call) (any, error) {
	targets, err := s.targets(c)
	if err != nil {
		return nil, err
	}
	updated := make([]cloud.Tags, len(targets))
	for i, t := range targets {
		updated[i] = t.Tags
		updated[i] = updated[i].With(cloud.TagsIn(c))
		if len(updated[i]) > cloud.MaxTags {
			return nil, api.BadRequest("TooManyTags", "A resource has at most %d tags.", cloud.MaxTags)
		}
	}
	for i, t := range targets {
		t.SetTags(updated[i], c.Now)
	}
	return done()
}

func (s service) untagResources(c *api.Call) (any, error) {
	targets, err := s.targets(c)
	if err != nil {
		return nil, err
	}
	keys, all := c.List("TagKey"), c.Bool("All", false)
	if len(keys) == 0 && !all {
		return nil, api.Missing("TagKey.N")
	}
	for _, t := range targets {
		left := slices.DeleteFunc(slices.Clone(t.Tags), func(tag cloud.Tag) bool {
			return all && len(keys) == 0 || slices.Contains(keys, tag.Key)
		})
		t.SetTags(left, c.Now)
	}
	return done()
}

type tagResource struct { //nolint:revive // names on the wire
	ResourceId, ResourceType, TagKey, TagValue string
}

func (s service) listTagResources(c *api.Call) (any, error) {
	ids, want := c.List("ResourceId"), cloud.TagsIn(c)
	if len(ids) == 0 && len(want) == 0 {
		return nil, api.Missing("ResourceId.N")
	}
	if len(want) > 0 {
		c.Holds("slb.tag-search-current")
	}
	var all []tagResource
	for _, id := range s.taggedIDs(c.Str("ResourceType"), ids) {
		resource, ok := s.tagged(c.Str("ResourceType"), id)
		if !ok || !c.Finds(resource.Created) || len(want) > 0 && !cloud.Searched(c, resource.Object, *resource.Tagged, cloud.HavingAll(want)) {
			continue
		}
		for _, t := range resource.Tags {
			all = append(all, tagResource{id, c.Str("ResourceType"), t.Key, t.Value})
		}
	}
	from, err := offset(c.Str("NextToken"), len(all))
	if err != nil {
		return nil, err
	}
	var answer struct {
		NextToken    string
		TagResources struct{ TagResource []tagResource }
	}
	end := min(from+tagPage, len(all))
	answer.TagResources.TagResource = append([]tagResource{}, all[from:end]...)
	if end < len(all) {
		answer.NextToken = strconv.Itoa(end)
	}
	return answer, nil
}

func offset(token string, limit int) (int, error) {
	if token == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(token)
	if err != nil || n < 0 || n > limit {
		return 0, api.Invalid("NextToken", "not a token of this action")
	}
	return n, nil
}

// taggedIDs are the named resources, or all of the type.
func (s service) taggedIDs(kind string, ids []string) []string {
	if len(ids) > 0 {
		return ids
	}
	switch kind {
	case "vservergroup":
		return s.ServerGroups.IDs()
	case "certificate":
		return s.Certificates.IDs()
	case "acl":
		return s.ACLs.IDs()
	default:
		return s.LoadBalancers.IDs()
	}
}
