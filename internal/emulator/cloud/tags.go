package cloud

import (
	"maps"
	"slices"
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

// Without returns the tags without a key. The receiver is not changed.
func (t Tags) Without(key string) Tags {
	return slices.DeleteFunc(slices.Clone(t), func(tag Tag) bool { return tag.Key == key })
}

// Match reports whether the tags hold every wanted one; an empty wanted value matches any value.
func (t Tags) Match(want []Tag) bool {
	for _, w := range want {
		v, ok := t.Get(w.Key)
		if !ok || (w.Value != "" && v != w.Value) {
			return false
		}
	}
	return true
}
