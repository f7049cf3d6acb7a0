//go:build unix && fleet

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// midway is how long a write takes in whose middle the manager is killed.
const midway = time.Second

// death is a write at which the manager is killed: the first one of the action after some others. Its answer is lost in any case; with
// dropped, the write itself is, too.
type death struct {
	action  string
	after   int
	dropped bool
}

// killedAtEveryWrite kills the manager in the middle of each write that routes need, and expects the next manager to bring everything
// into order, to leave nothing over and then to write nothing.
func (w *world) killedAtEveryWrite(from, to *corev1.Pod) {
	w.Helper()
	joins := []death{
		{action: "CreateRouteEntries"},
		{action: "CreateRouteEntries", dropped: true},
		{action: "CreateRouteEntries", after: 1},
		{action: "ModifyNetworkInterfaceAttribute"},
		{action: "ModifyNetworkInterfaceAttribute", dropped: true},
	}
	for i, d := range joins {
		name := fmt.Sprintf("joins-%d", i)
		w.killedAt(d, func() {
			w.admin(http.MethodPut, "instances/i-"+name, map[string]any{"InstanceName": name, "SourceDestCheck": true}, nil)
		})
		w.orderIsRestored(d)
	}
	leaves := []death{
		{action: "DeleteRouteEntries"},
		{action: "DeleteRouteEntries", dropped: true},
		{action: "DeleteRouteEntries", after: 1},
	}
	for i, d := range leaves {
		name := fmt.Sprintf("joins-%d", i)
		w.killedAt(d, func() {
			w.admin(http.MethodDelete, "instances/i-"+name, nil, nil)
			w.deleteNode(name)
		})
		w.orderIsRestored(d)
	}
	w.reach(from, to, true)
}

// killedAt lets something happen that makes the manager write, kills it in the middle of the write and starts the next one at once, while
// the cloud may still be at work on that write.
func (w *world) killedAt(d death, happen func()) {
	w.Helper()
	rule := map[string]any{"action": d.action, "after": d.after, "times": 1, "latency": midway.String()}
	if d.dropped {
		rule["drop"] = "before"
	}
	mark := w.lastCall()
	w.fault(rule)
	happen()
	w.until(fmt.Sprintf("write under way: %+v", d), eventDeadline, func(context.Context) string {
		if w.faultHits() == 0 {
			return "it has not begun"
		}
		return ""
	})
	w.killManager()
	killed := time.Now()
	w.startManager(routed...)
	w.until("the cloud is done with the write", eventDeadline, func(context.Context) string {
		ended := 0
		for _, c := range w.calls(mark) {
			if c.Action == d.action && c.Time.Before(killed) {
				ended++
			}
		}
		if ended <= d.after {
			return "it is at work"
		}
		return ""
	})
}

// orderIsRestored waits for the routes, and then watches a few passes over the tables for writes.
func (w *world) orderIsRestored(d death) {
	w.Helper()
	w.untilRouted(fmt.Sprintf("routed after the kill at %+v", d))
	w.until("the source/destination checks are off", eventDeadline, func(context.Context) string { return w.checked() })
	w.clearFaults()
	// What the manager read before the interrupted write ended may still lead to a write, which finds its work done.
	w.passes(func(call) {})
	w.passes(func(c call) {
		if c.Kind == "write" {
			w.Fatalf("after the kill at %+v and with everything in order, the manager writes: %+v", d, c)
		}
	})
}

// passes waits until the manager has compared both tables with the nodes, and shows the calls of that time.
func (w *world) passes(see func(call)) {
	w.Helper()
	mark := w.lastCall()
	w.until("the manager compares again", eventDeadline, func(context.Context) string {
		calls := w.calls(mark)
		for _, c := range calls {
			see(c)
		}
		// Of the first reads, one may belong to a comparison that began before.
		if reads := count(calls, "DescribeRouteEntryList"); reads < 4 {
			return fmt.Sprintf("%d reads of route tables", reads)
		}
		return ""
	})
}

// checked names a running instance whose network interface still has its source/destination check on.
func (w *world) checked() string {
	w.Helper()
	var state struct {
		NetworkInterfaces []struct {
			InstanceID      string `json:"InstanceId"`
			SourceDestCheck bool
		}
	}
	w.admin(http.MethodGet, "state", nil, &state)
	for _, i := range state.NetworkInterfaces {
		if i.SourceDestCheck && i.InstanceID != foreigner {
			return i.InstanceID + " is checked"
		}
	}
	return ""
}
