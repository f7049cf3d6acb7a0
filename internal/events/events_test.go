package events_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/events"
)

const repeat = time.Hour

// emitted empties the recorder and returns what it received.
func emitted(recorder *record.FakeRecorder) []string {
	var all []string
	for len(recorder.Events) > 0 {
		all = append(all, <-recorder.Events)
	}
	return all
}

func expect(t *testing.T, recorder *record.FakeRecorder, want ...string) {
	t.Helper()
	if got := emitted(recorder); !slices.Equal(got, want) {
		t.Errorf("emitted %q, want %q", got, want)
	}
}

func node(uid string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node", UID: types.UID(uid)}}
}

func TestOncePerOutcome(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		recorder := record.NewFakeRecorder(100)
		r := events.New(recorder, repeat)
		for attempt := range 10 {
			r.Warnf(node("1"), "Missing", "attempt %d", attempt)
			time.Sleep(time.Minute)
		}
		expect(t, recorder, "Warning Missing attempt 0")

		r.Warnf(node("1"), "Denied", "another reason")
		r.Warnf(node("2"), "Missing", "the name of a deleted node")
		expect(t, recorder, "Warning Denied another reason", "Warning Missing the name of a deleted node")

		time.Sleep(repeat)
		r.Warnf(node("1"), "Missing", "an hour later")
		expect(t, recorder, "Warning Missing an hour later")

		r.Resolve(events.Of(node("1")), "Missing", "Unheard")
		r.Warnf(node("1"), "Missing", "back again")
		expect(t, recorder, "Warning Missing back again")
	})
}

// TestOutcome: a caller whose messages say all that is wrong with an object emits each of them when it changes, and never again.
func TestOutcome(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		recorder := record.NewFakeRecorder(100)
		r := events.New(recorder, 0)
		svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "1"}}
		pass := func(messages ...string) {
			var reasons []string
			for _, message := range messages {
				reason, _, _ := strings.Cut(message, " ")
				reasons = append(reasons, reason)
				r.Emit(events.Of(svc), events.Event{Object: svc, Type: corev1.EventTypeWarning, Reason: reason, Message: message, Outcome: message})
			}
			r.Retain(events.Of(svc), reasons...)
			time.Sleep(20 * time.Minute)
		}
		for range 10 {
			pass("Invalid a", "Conflict b")
		}
		expect(t, recorder, "Warning Invalid Invalid a", "Warning Conflict Conflict b") //nolint:dupword // the reason, then the message
		pass("Invalid c", "Conflict b")
		expect(t, recorder, "Warning Invalid Invalid c") //nolint:dupword // the reason, then the message
		pass("Conflict b")
		pass("Invalid c", "Conflict b")
		expect(t, recorder, "Warning Invalid Invalid c") //nolint:dupword // the reason, then the message
	})
}

func TestSubjectsWithoutObject(t *testing.T) {
	t.Parallel()
	recorder := record.NewFakeRecorder(100)
	r := events.New(recorder, repeat)
	for _, table := range []string{"vtb-1", "vtb-2", "vtb-1"} {
		r.Emit(events.Subject{Name: table}, events.Event{Object: node("1"), Type: corev1.EventTypeNormal, Reason: "Full", Message: table})
	}
	expect(t, recorder, "Normal Full vtb-1", "Normal Full vtb-2")
}

// TestForgets: a subject that nobody mentions any more is forgotten, one that is mentioned is not.
func TestForgets(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		recorder := record.NewFakeRecorder(100)
		r := events.New(recorder, 0)
		r.Warnf(node("gone"), "Missing", "gone")
		r.Warnf(node("there"), "Missing", "there")
		for range 4 {
			time.Sleep(20 * time.Minute)
			r.Warnf(node("there"), "Missing", "there")
		}
		emitted(recorder)
		r.Warnf(node("gone"), "Missing", "gone")
		r.Warnf(node("there"), "Missing", "there")
		expect(t, recorder, "Warning Missing gone")
	})
}

func TestWithoutRecorder(t *testing.T) {
	t.Parallel()
	var none *events.Recorder
	for _, r := range []*events.Recorder{none, events.New(nil, repeat)} {
		if r.Warnf(node("1"), "Missing", "nobody hears it") {
			t.Error("an event was written")
		}
		r.Resolve(events.Of(node("1")), "Missing")
		r.Retain(events.Of(node("1")))
	}
}

func TestMessagesAreCut(t *testing.T) {
	t.Parallel()
	recorder := record.NewFakeRecorder(1)
	events.New(recorder, repeat).Warnf(node("1"), "Long", "%s", strings.Repeat("é", 250_000))
	message := strings.TrimPrefix(<-recorder.Events, "Warning Long ")
	if len(message) > events.MaxMessage || len(message) < events.MaxMessage-4 || !utf8.ValidString(message) ||
		!strings.HasSuffix(message, "…") {
		t.Errorf("the message has %d bytes and ends in %q", len(message), message[len(message)-8:])
	}
}

func TestConcurrentUse(t *testing.T) {
	t.Parallel()
	recorder := record.NewFakeRecorder(100)
	r := events.New(recorder, repeat)
	var callers sync.WaitGroup
	for i := range 50 {
		callers.Go(func() {
			for j := range 10 {
				r.Warnf(node(fmt.Sprint(j)), "Missing", "caller %d", i)
				r.Resolve(events.Of(node(fmt.Sprint(j))), "Other")
			}
		})
	}
	callers.Wait()
	if got := emitted(recorder); len(got) != 10 {
		t.Errorf("%d events for 10 nodes", len(got))
	}
}

// BenchmarkPass is a pass over 5,000 nodes with a problem each.
func BenchmarkPass(b *testing.B) {
	r := events.New(&record.FakeRecorder{}, repeat)
	var all []*corev1.Node
	for i := range 5000 {
		all = append(all, node(fmt.Sprint(i)))
	}
	for b.Loop() {
		for _, n := range all {
			r.Warnf(n, "Missing", "instance of %s", n.Name)
		}
	}
}
