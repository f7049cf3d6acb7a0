package slb

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/waits"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
)

// served are the listeners of the Service web, and groups its vServer groups, on all CLBs.
func (w *world) served() (listeners, groups []string) {
	w.t.Helper()
	for name, lb := range w.state() {
		for key, listener := range lb.Listeners {
			if text, _ := listener["Description"].(string); strings.Contains(text, "/web/") {
				listeners = append(listeners, name+" "+key)
			}
		}
		for group := range lb.Groups {
			if strings.Contains(group, "/web/") {
				groups = append(groups, name+" "+group)
			}
		}
	}
	return listeners, groups
}

// saidToStay counts the events that say that vServer groups stay.
func (w *world) saidToStay() (n int) {
	w.t.Helper()
	for _, event := range w.newEvents() {
		if strings.Contains(event, "stay if there are any") {
			n++
		}
	}
	return n
}

// TestContradictionHoldsNoListener: the list of vServer groups shows one that by its id does not exist, or lacks one that a listener of
// the Service uses, for good. The listeners of a deleted Service go all the same, and the Service is released with one event.
func TestContradictionHoldsNoListener(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]map[string]any{
		"listed, and not found by id": {
			"action": "DescribeVServerGroupAttribute", "code": "InvalidParameter", "status": 404, "times": 0,
		},
		"used, and not listed": {"action": "DescribeVServerGroups", "body": `{"RequestId":"1","VServerGroups":{"VServerGroup":[]}}`, "times": 0},
	} {
		for _, restarts := range []bool{false, true} {
			t.Run(name+map[bool]string{true: ", restart"}[restarts], func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t)
					threeNodes(w)
					id := w.makeCLB().ID
					w.makeListener(id, 9000, "by hand")
					w.put(reusing("web", id, "true", 80))
					w.mustPass("web")
					w.drift("web")
					if restarts {
						w.restart()
					}
					w.fault(fault)
					w.newEvents()
					w.change("web", deleteService)
					w.passesOver("web", 3*waits.LeftoverUnread)
					if listeners, _ := w.served(); len(listeners) > 0 {
						t.Errorf("listeners %v", listeners)
					}
					if held := w.get("web").Finalizers; len(held) > 0 {
						t.Errorf("finalizers %v", held)
					}
					w.clearFaults()
					if _, groups := w.served(); len(groups) > 0 && w.saidToStay() != 1 {
						t.Errorf("groups %v are left without a word", groups)
					}
				})
			})
		}
	}
}

// TestUnreadGroupsOfALeftPlaceHoldNoListener: a Service that has just moved is deleted while vServer groups cannot be read. Its listeners
// at the place that it leaves go, and those at the new one, and it is released with a word about what stays.
func TestUnreadGroupsOfALeftPlaceHoldNoListener(t *testing.T) {
	t.Parallel()
	for _, restarts := range []bool{false, true} {
		for _, move := range stuckMoves() {
			t.Run(move.name+map[bool]string{true: ", restart"}[restarts], func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					w, _ := movedWorld(t, move, time.Hour)
					if restarts {
						w.restart()
					} else {
						w.drift("web")
					}
					w.fault(map[string]any{"action": "DescribeVServerGroups", "code": "Forbidden.RAM", "status": 403, "times": 0})
					w.newEvents()
					w.change("web", deleteService)
					w.passesOver("web", time.Minute)
					if listeners, _ := w.served(); len(listeners) > 0 {
						t.Errorf("listeners %v after a minute", listeners)
					}
					w.passesOver("web", 2*waits.LeftoverUnread+10*time.Minute)
					listeners, groups := w.served()
					if held := w.get("web").Finalizers; len(listeners) > 0 || len(held) > 0 {
						t.Errorf("listeners %v, finalizers %v", listeners, held)
					}
					if said := w.saidToStay(); len(groups) > 0 && said == 0 {
						t.Errorf("groups %v are left, %d events", groups, said)
					}
				})
			})
		}
	}
}

// groupsRefused refuses to list the vServer groups of a CLB.
type groupsRefused struct {
	next http.RoundTripper
	id   string
}

func (g groupsRefused) RoundTrip(request *http.Request) (*http.Response, error) {
	answer, err := g.next.RoundTrip(request)
	q := request.URL.Query()
	if err != nil || q.Get("Action") != "DescribeVServerGroups" || q.Get("LoadBalancerId") != g.id {
		return answer, err
	}
	if err := answer.Body.Close(); err != nil {
		return nil, err
	}
	const refusal = `{"RequestId":"1","Code":"Forbidden.RAM","Message":"The role lacks a permission."}`
	answer.StatusCode, answer.Body, answer.ContentLength = http.StatusForbidden, io.NopCloser(strings.NewReader(refusal)), int64(len(refusal))
	answer.Header.Del("Content-Length")
	return answer, nil
}

// TestUnreadGroupsOfALeftGroup: a Service moves from one group to another one, and the vServer groups where it was cannot be read. Its
// listener there goes, and an event says that vServer groups stay.
func TestUnreadGroupsOfALeftGroup(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.moveGrace = 30 * time.Second
		w.restart()
		threeNodes(w)
		w.putAll(grouped("shop", "other", 81), grouped("mail", "edge", 82), grouped("web", "edge", 80))
		w.change("web", func(svc *corev1.Service) { annotate(svc, annotation.Group, "other") })
		w.passesFor("web", time.Second)
		w.newEvents()
		before, _ := w.served()
		w.transport.next = groupsRefused{w.transport.next, w.balancer("k8s-group-default-edge").ID}
		w.passesOver("web", 3*waits.LeftoverUnread)
		w.transport.next = w.emulator.Transport()
		if record, _ := driver.RecordOn(w.get("web")); len(record.Leaving) > 0 {
			t.Errorf("the Service is still leaving %v", record.Leaving)
		}
		listeners, groups := w.served()
		if len(before) != 2 || len(listeners) != 1 {
			t.Errorf("listeners %v, before %v", listeners, before)
		}
		slices.Sort(groups)
		if said := w.newEvents(); len(groups) > 1 && strings.Count(strings.Join(said, "\n"), "stay if there are any") != 1 {
			t.Errorf("groups %v, %q events", groups, said)
		}
	})
}
