// Package dryrun shows a cloud as it would be after writes that nobody made.
package dryrun

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
)

// IDs are those of objects that the cloud does not have, as texts show them. The zero value has given none.
type IDs struct{ made atomic.Int64 }

// New returns another one.
func (i *IDs) New(kind string) string { return fmt.Sprintf("new-%s-%d", kind, i.made.Add(1)) }

// Objects are the objects of one kind in the cloud, with changes that only a dry run sees. The zero value has none.
type Objects[T any] struct {
	mu      sync.Mutex // guards the rest
	created []*object[T]
	edits   map[string][]func(*T)
	deleted map[string]bool // also those with the id of one that was created afterwards
}

// object is one that is not in the cloud.
type object[T any] struct {
	id    string
	value T
}

// Create adds an object, perhaps in place of one that was deleted.
func (o *Objects[T]) Create(id string, value T) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.created = append(o.created, &object[T]{id, value})
}

// Edit changes an object, each time that it is read where it is one of the cloud. The change must replace slices and maps, which it shares with what was read
// before.
func (o *Objects[T]) Edit(id string, change func(*T)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if made := o.find(id); made != nil {
		change(&made.value)
		return
	}
	if o.edits == nil {
		o.edits = map[string][]func(*T){}
	}
	o.edits[id] = append(o.edits[id], change)
}

// Delete removes an object.
func (o *Objects[T]) Delete(id string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.deleted == nil {
		o.deleted = map[string]bool{}
	}
	o.deleted[id] = true
	o.created = slices.DeleteFunc(o.created, func(made *object[T]) bool { return made.id == id })
	delete(o.edits, id)
}

// Get returns an object. read reads one of the cloud; gone is the error for one that was deleted.
func (o *Objects[T]) Get(id string, read func() (T, error), gone error) (T, error) {
	o.mu.Lock()
	made, deleted := o.find(id), o.deleted[id]
	o.mu.Unlock()
	var none T
	switch {
	case made != nil:
		return made.value, nil
	case deleted:
		return none, gone
	}
	found, err := read()
	if err != nil {
		return none, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, change := range o.edits[id] {
		change(&found)
	}
	return found, nil
}

// List returns the objects of an answer as they would be, and those that were created and match.
func (o *Objects[T]) List(answer []T, id func(*T) string, matches func(*T) bool) []T {
	o.mu.Lock()
	defer o.mu.Unlock()
	var found []T
	for _, value := range answer {
		if o.deleted[id(&value)] {
			continue
		}
		for _, change := range o.edits[id(&value)] {
			change(&value)
		}
		found = append(found, value)
	}
	for _, made := range o.created {
		if matches(&made.value) {
			found = append(found, made.value)
		}
	}
	return found
}

// IsCreated reports whether an object is not in the cloud.
func (o *Objects[T]) IsCreated(id string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.find(id) != nil
}

// InCloud returns the ids of those objects that are in the cloud, as far as a dry run has neither created nor deleted them.
func (o *Objects[T]) InCloud(ids []string) []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return o.deleted[id] || o.find(id) != nil })
}

// find returns an object that was created, nil for any other. The caller holds the lock.
func (o *Objects[T]) find(id string) *object[T] {
	for _, made := range o.created {
		if made.id == id {
			return made
		}
	}
	return nil
}
