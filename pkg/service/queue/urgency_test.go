package queue

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// TestEndpointEventGoesBeforeAFanOut: passes that find nothing to do hold up nobody who has lost an endpoint.
func TestEndpointEventGoesBeforeAFanOut(t *testing.T) {
	t.Parallel()
	queue, order := New("test", time.Second, time.Minute)
	defer queue.ShutDown()
	add := func(i int, wanted Urgency) {
		key := types.NamespacedName{Namespace: "default", Name: fmt.Sprint(i)}
		order.Ask(key, wanted)
		queue.Add(key)
	}
	const services = 5000
	for i := range services {
		add(i, Usual)
	}
	for i := range services / 2 {
		add(i, NodeLeft)
	}
	add(4321, OwnEvent) // was in the queue
	add(services, OwnEvent)
	for i, want := range []string{"4321", "5000", "0", "1"} {
		key, _ := queue.Get()
		if key.Name != want {
			t.Errorf("Service %d of the queue is %s, want %s", i, key.Name, want)
		}
		queue.Done(key)
	}
	seen := 0
	for ; queue.Len() > 0; seen++ {
		key, _ := queue.Get()
		queue.Done(key)
	}
	if want := services + 1 - 4; seen != want {
		t.Errorf("%d further Services, want %d: each of them once", seen, want)
	}
}

// TestUrgencyOfAServiceUnderWay: an event that comes during a pass makes the next one urgent.
func TestUrgencyOfAServiceUnderWay(t *testing.T) {
	t.Parallel()
	queue, order := New("test", time.Second, time.Minute)
	defer queue.ShutDown()
	busy, other := types.NamespacedName{Name: "busy"}, types.NamespacedName{Name: "other"}
	queue.Add(busy)
	if key, _ := queue.Get(); key != busy {
		t.Fatalf("got %s", key)
	}
	queue.Add(other)
	order.Ask(busy, OwnEvent)
	queue.Add(busy)
	queue.Done(busy)
	if key, _ := queue.Get(); key != busy {
		t.Errorf("%s goes first, want the Service with an event", key)
	}
}
