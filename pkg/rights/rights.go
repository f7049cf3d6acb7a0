// Package rights says which rights at the API server a part of the manager needs. Each part declares its own beside its
// code; the chart's roles, the reference page and the doctor's questions are made from these tables.
//
// It grants nothing and asks nothing.
package rights

// Right is the right to do something with one kind of objects.
type Right struct {
	// Group is the API group, "" for the core group.
	Group string
	// Resource is the resource, with its subresource after a slash: "services/status".
	Resource string
	// Namespace limits the right to one namespace; "" means all, and objects without a namespace.
	Namespace string
	// Names limit the right to objects of these names; none means all. Creating and listing cannot be limited so.
	Names []string
	Verbs []string
	// Why says what for.
	Why string
	// Rare are those of the verbs that an end-to-end run of the features does not use.
	Rare []string
	// Optional says that without the right only what Why names is missing; a role from before it, such as the vendor's,
	// need not grant it.
	Optional bool
}

// ToWatch is what an informer needs. It streams its first list with a watch, and lists only where the API server does not
// offer that, as old ones do not.
func ToWatch(group, resource, why string) Right {
	return Right{Group: group, Resource: resource, Verbs: []string{"list", "watch"}, Rare: []string{"list"}, Why: why}
}

// Set is what one feature needs.
type Set struct {
	Feature string
	Rights  []Right
}
