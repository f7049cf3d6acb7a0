// Package events emits one Kubernetes event per outcome instead of one per attempt.
//
// Controllers meet the same problem on every pass. A [Recorder] remembers which outcome it emitted last for each reason and
// subject, and stays quiet while nothing changes. It forgets subjects that nobody mentions any more, so callers need not
// report deleted objects.
package events

import (
	"fmt"
	"hash/maphash"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
)

// MaxMessage is the length in bytes at which messages are cut: the API server refuses longer ones in events.k8s.io, and what
// users may write into an object must not fill etcd through its events.
const MaxMessage = 1024

const (
	// keep is how long a subject is remembered that nobody mentions any more. It is longer than any caller's period.
	keep = time.Hour
	// sweepInterval spreads the cost of forgetting: a sweep on every event would make a pass over n problems cost n squared.
	sweepInterval = time.Minute
)

// Object is an object that events are about. Every Kubernetes API object is one.
type Object interface {
	runtime.Object
	GetUID() types.UID
	GetName() string
}

// Subject is what an outcome belongs to.
type Subject struct {
	// UID is that of an object, so that an object that takes over the name of a deleted one starts afresh.
	UID types.UID
	// Name is for what has no UID, such as a route table.
	Name string
}

// Of returns the subject of the object's own events.
func Of(object Object) Subject { return Subject{UID: object.GetUID(), Name: object.GetName()} }

// Event is one event and the outcome that it stands for.
type Event struct {
	// Object is shown with the event.
	Object runtime.Object
	// Type is [corev1.EventTypeNormal] or [corev1.EventTypeWarning].
	Type, Reason, Message string
	// Outcome makes events of one reason different from each other: one with another outcome than the last is emitted at
	// once. Empty means that the reason alone counts.
	Outcome string
}

// Recorder emits events. It is safe for concurrent use; its methods do nothing on a nil Recorder.
type Recorder struct {
	recorder record.EventRecorder
	repeat   time.Duration
	seed     maphash.Seed

	mu       sync.Mutex // guards the fields below
	subjects map[Subject]*history
	swept    time.Time
}

// history is what was emitted for a subject, by reason.
type history struct {
	mentioned time.Time
	last      map[string]emission
}

type emission struct {
	outcome uint64
	at      time.Time
}

// New returns a Recorder that writes to recorder; nil emits nothing. An outcome that lasts is emitted again every repeat, at most
// an hour, which is how long API servers keep events by default; 0 never repeats it.
func New(recorder record.EventRecorder, repeat time.Duration) *Recorder {
	return &Recorder{recorder: recorder, repeat: min(repeat, keep), seed: maphash.MakeSeed(), subjects: map[Subject]*history{}}
}

// Emit writes the event unless the last one with its reason about the subject had the same outcome and is not due again. It
// reports whether it wrote.
func (r *Recorder) Emit(about Subject, event Event) bool {
	if r == nil || r.recorder == nil || !r.due(about, event, time.Now()) {
		return false
	}
	r.recorder.Event(event.Object, event.Type, event.Reason, cut(event.Message))
	return true
}

// Warnf emits a Warning about the object, once per reason.
func (r *Recorder) Warnf(object Object, reason, format string, args ...any) bool {
	return r.Emit(Of(object), Event{Object: object, Type: corev1.EventTypeWarning, Reason: reason, Message: fmt.Sprintf(format, args...)})
}

// Resolve forgets the reasons, so that the same outcome is emitted again should it come back.
func (r *Recorder) Resolve(about Subject, reasons ...string) {
	r.forget(about, func(reason string) bool { return slices.Contains(reasons, reason) })
}

// Retain forgets all reasons but those given. A caller that knows everything that is wrong with a subject need not say what
// was resolved.
func (r *Recorder) Retain(about Subject, reasons ...string) {
	r.forget(about, func(reason string) bool { return !slices.Contains(reasons, reason) })
}

func (r *Recorder) forget(about Subject, resolved func(reason string) bool) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	known, ok := r.subjects[about]
	if !ok {
		return
	}
	known.mentioned = time.Now()
	for reason := range known.last {
		if resolved(reason) {
			delete(known.last, reason)
		}
	}
	if len(known.last) == 0 {
		delete(r.subjects, about)
	}
}

// due reports whether the event is to be written now, and remembers it if so.
func (r *Recorder) due(about Subject, event Event, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sweep(now)
	known := r.subjects[about]
	if known == nil {
		known = &history{last: map[string]emission{}}
		r.subjects[about] = known
	}
	known.mentioned = now
	outcome := maphash.String(r.seed, event.Outcome)
	last, ok := known.last[event.Reason]
	if ok && last.outcome == outcome && (r.repeat == 0 || now.Sub(last.at) < r.repeat) {
		return false
	}
	known.last[event.Reason] = emission{outcome: outcome, at: now}
	return true
}

// sweep forgets the subjects that nobody mentions any more.
func (r *Recorder) sweep(now time.Time) {
	if now.Sub(r.swept) < sweepInterval {
		return
	}
	r.swept = now
	for subject, known := range r.subjects {
		if now.Sub(known.mentioned) > keep {
			delete(r.subjects, subject)
		}
	}
}

// cut shortens the message to MaxMessage bytes at a whole character.
func cut(message string) string {
	const ellipsis = "…"
	if len(message) <= MaxMessage {
		return message
	}
	end := MaxMessage - len(ellipsis)
	for !utf8.RuneStart(message[end]) {
		end--
	}
	return message[:end] + ellipsis
}
