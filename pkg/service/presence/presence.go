// Package presence says whether a Service has a load balancer: it is unknown, present or gone. Only what this package accepts as a proof
// makes one gone: [Absences.Decide] and [Presence.AfterSeenDeletion] return such a value, and nothing outside of the package can write one.
package presence

import (
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/absence"
)

// Presence is whether a Service has a load balancer. Its zero value is unknown, and says that nothing was asked yet. It is a value: each
// method that changes something returns another one.
type Presence struct {
	state state
	// id is the load balancer that the Service has, or had. reused says that it is an existing one that the Service names.
	id     string
	reused bool
	// missing are the answers that lacked the load balancer, by id and by tag. Only an unknown one has any.
	missing absence.Row
	// maybeCreated says that there may be a load balancer whose id is not known.
	maybeCreated bool
	// deleted says that this process saw the end of a deletion of its own, released that it removed what the Service had.
	deleted, released bool
	// proof is why the load balancer counts as gone, none otherwise.
	proof proof
}

type state int

const (
	// unknown: nothing was asked yet, or what is known may be wrong. It creates and releases nothing.
	unknown state = iota
	present
	gone
)

// proof is why a load balancer counts as gone.
type proof int

const (
	none proof = iota
	// neverCreated: nothing says that there ever was one of the Service.
	neverCreated
	// wasReleased: this process removed what the Service had, and a search finds nothing.
	wasReleased
	// wasDeleted: a deletion of this process ended, and the load balancer was missing more than once.
	wasDeleted
	// confirmed: it was missing by id and by tag for some time, while something else that must exist could be read.
	confirmed
)

// Found is the presence of a load balancer that an answer showed. reused says that it is an existing one that the Service names.
func Found(id string, reused bool) Presence {
	return Presence{state: present, id: id, reused: reused}
}

// IsZero reports whether nothing was asked yet.
func (p Presence) IsZero() bool { return p == Presence{} }

// Unknown reports whether the Service may or may not have a load balancer.
func (p Presence) Unknown() bool { return p.state == unknown }

// Present reports whether the Service has a load balancer.
func (p Presence) Present() bool { return p.state == present }

// Gone reports whether it is proven that the Service has none.
func (p Presence) Gone() bool { return p.state == gone }

// NeverCreated reports whether nothing says that there ever was a load balancer of the Service.
func (p Presence) NeverCreated() bool { return p.proof == neverCreated }

// ID is the load balancer that the Service has, or had, empty for none. For one that is gone it is part of the client token of the next
// one: with the old token the cloud would answer with the old, deleted one.
func (p Presence) ID() string { return p.id }

// Reused reports whether the Service is on an existing load balancer that it names.
func (p Presence) Reused() bool { return p.state == present && p.reused }

// WasReused reports whether the load balancer that the Service has, or had, is an existing one that it names.
func (p Presence) WasReused() bool { return p.reused }

// MaybeCreated reports whether there may be a load balancer whose id is not known: its creation was not answered.
func (p Presence) MaybeCreated() bool { return p.maybeCreated }

// WasDeleted reports whether this process saw the end of a deletion of its own.
func (p Presence) WasDeleted() bool { return p.deleted }

// WasReleased reports whether this process removed what the Service had.
func (p Presence) WasReleased() bool { return p.released }

// Vanished is the id of a load balancer that is gone although the Service should still have it, empty for none.
func (p Presence) Vanished() string {
	if p.proof != confirmed {
		return ""
	}
	return p.id
}

// Doubted is the presence when it is to be asked for again. What is present stays so until an answer lacks it.
func (p Presence) Doubted() Presence {
	if p.state == gone {
		p.state, p.proof = unknown, none
	}
	return p
}

// AfterLoss is the presence after a call said that a load balancer does not exist: one answer proves nothing.
func (p Presence) AfterLoss(id string) Presence {
	return Presence{id: id, reused: p.reused, missing: absence.Row{}.Lacking(time.Now(), absence.Rule{})}
}

// AfterUnansweredCreation is the presence after a creation of which nobody knows whether it succeeded. What was proven before it proves
// nothing any more.
func (p Presence) AfterUnansweredCreation() Presence {
	return Presence{id: p.id, reused: p.reused, maybeCreated: true}
}

// AfterDeletion is the presence after a deletion of this process ended. It is gone once searches agree.
func (p Presence) AfterDeletion() Presence {
	p.state, p.proof, p.deleted = unknown, none, true
	return p
}

// AfterSeenDeletion is the presence after the job of a deletion of this process succeeded, and more than one answer after that lacked the
// load balancer. It is gone.
func (p Presence) AfterSeenDeletion() Presence {
	p.deleted = true
	return p.asGone(Absence{ID: p.id}, wasDeleted)
}

// AfterRelease is the presence after this process removed what the Service had. id is the load balancer that went with it, empty where it
// stays.
func (p Presence) AfterRelease(id string) Presence {
	return Presence{id: id, reused: p.reused, released: true}
}

// asMissing is the presence while one answer lacks the load balancer.
func (p Presence) asMissing(a Absence, row absence.Row) Presence {
	p.state, p.proof, p.id, p.missing, p.maybeCreated = unknown, none, a.ID, row, a.MaybeCreated
	return p
}

// asGone is the presence when an absence is proven.
func (p Presence) asGone(a Absence, why proof) Presence {
	return Presence{state: gone, id: a.ID, reused: p.reused, deleted: p.deleted, released: p.released, proof: why}
}
