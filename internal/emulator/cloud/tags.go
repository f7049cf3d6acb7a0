package cloud

import (
	"maps"
	"slices"
	"time"
)

// Tag is one key and value.
type Tag struct{ Key, Value string }

// Tags are the tags of a resource, in the order in which their keys were first set.
type Tags []Tag

// TagsOf makes tags of a map, by key.
func TagsOf(m map[string]string) Tags {
	var t Tags
	for _, k := range slices.Sorted(maps.Keys(m)) {
		t = append(t, Tag{k, m[k]})
	}
	return t
}

// Get returns the value of a key.
func (t Tags) Get(key string) (string, bool) {
	for _, tag := range t {
		if tag.Key == key {
			return tag.Value, true
		}
	}
	return "", false
}

// Set returns the tags with one more, or with the value replaced. The receiver is not changed.
func (t Tags) Set(key, value string) Tags {
	out := slices.Clone(t)
	for i := range out {
		if out[i].Key == key {
			out[i].Value = value
			return out
		}
	}
	return append(out, Tag{key, value})
}

// With returns the tags with more of them, as [Tags.Set] sets each.
func (t Tags) With(more Tags) Tags {
	for _, tag := range more {
		t = t.Set(tag.Key, tag.Value)
	}
	return t
}

// Match reports whether the tags hold every wanted one; an empty wanted value matches any value.
func (t Tags) Match(want Tags) bool {
	for _, w := range want {
		v, ok := t.Get(w.Key)
		if !ok || (w.Value != "" && v != w.Value) {
			return false
		}
	}
	return true
}

// Tagged is what resources with tags have. It remembers a few earlier states, because searches by tag may lag behind.
type Tagged struct {
	Tags Tags
	past []pastTags
}

// pastTags are tags that were in force until a moment.
type pastTags struct {
	until time.Time
	tags  Tags
}

// maxPast bounds how many states are remembered.
const maxPast = 32

// SetTags replaces the tags at a moment.
func (t *Tagged) SetTags(tags Tags, now time.Time) {
	if len(t.past) == maxPast {
		t.past = slices.Clone(t.past[1:])
	}
	t.past = append(t.past, pastTags{now, t.Tags})
	t.Tags = tags
}

// TagsAt returns the tags that were in force at a moment after the creation of the resource.
func (t *Tagged) TagsAt(moment time.Time) Tags {
	for _, p := range t.past {
		if moment.Before(p.until) {
			return p.tags
		}
	}
	return t.Tags
}
