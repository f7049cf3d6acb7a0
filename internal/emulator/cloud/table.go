package cloud

import (
	"iter"
	"slices"
	"sort"
)

// Resource is anything with an id and a place in the order of creation.
type Resource interface {
	comparable
	Key() (id string, seq int64)
}

// Table keeps resources by id and in the order of creation. The zero value is ready; the store's lock guards it.
type Table[T Resource] struct {
	byID  map[string]T
	order []T
}

// Get returns the resource of an id.
func (t *Table[T]) Get(id string) (T, bool) {
	v, ok := t.byID[id]
	return v, ok
}

// Add appends a resource.
func (t *Table[T]) Add(v T) {
	if t.byID == nil {
		t.byID = map[string]T{}
	}
	id, _ := v.Key()
	t.byID[id] = v
	t.order = append(t.order, v)
}

// Delete removes a resource.
func (t *Table[T]) Delete(v T) {
	id, seq := v.Key()
	delete(t.byID, id)
	i := sort.Search(len(t.order), func(i int) bool {
		_, s := t.order[i].Key()
		return s >= seq
	})
	if i < len(t.order) && t.order[i] == v {
		t.order = slices.Delete(t.order, i, i+1)
	}
}

// Len returns the number of resources.
func (t *Table[T]) Len() int { return len(t.order) }

// IDs returns the ids of all resources, in the order of creation.
func (t *Table[T]) IDs() []string {
	ids := make([]string, 0, len(t.order))
	for _, v := range t.order {
		id, _ := v.Key()
		ids = append(ids, id)
	}
	return ids
}

// All yields the resources in the order of creation.
func (t *Table[T]) All() iter.Seq[T] { return slices.Values(t.order) }

// Select returns the resources that keep accepts, in the order of creation.
func (t *Table[T]) Select(keep func(T) bool) []T {
	var selected []T
	for _, v := range t.order {
		if keep(v) {
			selected = append(selected, v)
		}
	}
	return selected
}

// Seq returns the sequence number of a resource, for paging by token.
func Seq[T Resource](v T) int64 {
	_, seq := v.Key()
	return seq
}
