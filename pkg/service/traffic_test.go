package service

import (
	"context"
	"encoding/json"
	"iter"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/informers"
	clienttesting "k8s.io/client-go/testing"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
)

// TestTrafficCondition: only a proof makes a Node False, and without one it stays as it is, unless it is about to go for some time already.
func TestTrafficCondition(t *testing.T) {
	t.Parallel()
	const none, yes, no, unknown = corev1.ConditionStatus(""), corev1.ConditionTrue, corev1.ConditionFalse, corev1.ConditionUnknown
	for _, test := range []struct {
		name   string
		now    corev1.ConditionStatus
		of     nodeTraffic
		status corev1.ConditionStatus
		reason string
	}{
		{"never a backend", none, nodeTraffic{}, none, ""},
		{"never a backend, at a start", none, nodeTraffic{unknown: true}, none, ""},
		{"a new backend", none, nodeTraffic{serves: true}, yes, TrafficServing},
		{"a new backend, at a start", none, nodeTraffic{serves: true, held: true, unknown: true}, yes, TrafficServing},
		{"weight 0 when the manager first sees it", none, nodeTraffic{drains: true}, no, TrafficDraining},
		{"weight 0 at a start", none, nodeTraffic{drains: true, unknown: true}, unknown, TrafficNotConfirmed},
		{"weight 0", yes, nodeTraffic{drains: true, leaving: true}, no, TrafficDraining},
		{"weight 0 here, not there", yes, nodeTraffic{drains: true, serves: true}, yes, TrafficServing},
		{"removed", yes, nodeTraffic{}, no, TrafficRemoved},
		{"a job is under way", yes, nodeTraffic{held: true}, yes, ""},
		{"a job does not end", yes, nodeTraffic{held: true, leaving: true}, unknown, TrafficNotConfirmed},
		{"an outage at a start", yes, nodeTraffic{unknown: true}, yes, ""},
		{"leaving in an outage at a start", yes, nodeTraffic{unknown: true, leaving: true}, unknown, TrafficNotConfirmed},
		{"confirmed at last", unknown, nodeTraffic{}, no, TrafficRemoved},
		{"still not confirmed", unknown, nodeTraffic{unknown: true}, unknown, TrafficNotConfirmed},
		{"out in an outage", no, nodeTraffic{unknown: true, leaving: true}, no, ""},
		{"a late call has added it", no, nodeTraffic{serves: true}, yes, TrafficServing},
		{"a call that adds it is not answered", no, nodeTraffic{held: true}, unknown, TrafficNotConfirmed},
		{"drained, then removed", no, nodeTraffic{}, no, TrafficRemoved},
	} {
		if status, reason := test.of.conditionAfter(test.now); status != test.status || reason != test.reason {
			t.Errorf("%s: %q %q, want %q %q", test.name, status, reason, test.status, test.reason)
		}
	}
}

// TestTrafficOfAService: what passes find adds up to what a node gets.
func TestTrafficOfAService(t *testing.T) {
	t.Parallel()
	start := time.Now().Add(-91 * time.Second)
	web, shop, traffic := testService("web"), testService("shop"), &trafficWriter{traffic: newTraffic()}
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	// note notes those nodes, with a "-" those with weight 0; "?" is nobody knows.
	note := func(svc *corev1.Service, readAt time.Time, wrote bool, settled time.Time, nodes ...string) {
		traffic.note(svc, readAt, wrote, settled, func() iter.Seq2[string, bool] {
			if slices.Equal(nodes, []string{"?"}) {
				return nil
			}
			return func(yield func(string, bool) bool) {
				for _, node := range nodes {
					if plain := node[len(node)-1:]; !yield(plain, plain == node) {
						return
					}
				}
			}
		})
	}
	for _, step := range []struct {
		name              string
		act               func()
		serve, drain, may []string
	}{
		{"a first read, while calls of a process before may be under way", func() {
			note(web, at(0), false, at(30), "a", "b", "-c")
		}, []string{"a", "b"}, []string{"c"}, nil},
		{"b leaves", func() { note(web, at(0), true, at(30), "a", "-b", "-c") },
			[]string{"a"}, []string{"b", "c"}, []string{"b"}},
		{"another Service has b", func() { note(shop, at(0), true, at(0), "b") },
			[]string{"a", "b"}, []string{"b", "c"}, []string{"b"}},
		{"and is gone", func() { traffic.forget(mark.ServiceName(shop)) }, []string{"a"}, []string{"b", "c"}, []string{"b"}},
		{"a later read", func() { note(web, at(30), false, at(30), "a", "-b", "-c") },
			[]string{"a"}, []string{"b", "c"}, nil},
		{"a plan takes b back", func() { traffic.hold(web, sets.New("a", "b")) }, []string{"a"}, []string{"b", "c"}, []string{"b"}},
		{"a call is not answered", func() { note(web, time.Time{}, true, at(90), "a", "-b", "-c") },
			[]string{"a"}, []string{"b", "c"}, []string{"b"}},
		{"it has had an effect late", func() { note(web, at(90), false, at(90), "a", "b", "-c") },
			[]string{"a", "b"}, []string{"c"}, nil},
		{"a read that lags", func() {
			note(web, at(91), false, at(90), "b")
		}, []string{"b"}, nil, []string{"a"}},
		{"the Service moves, and has nothing at its new place", func() {
			note(web, time.Time{}, true, at(90))
		}, nil, nil, []string{"a", "b"}},
		{"it has left", func() { note(web, at(300), true, at(90), "d") }, []string{"d"}, nil, nil},
		{"nothing can be read", func() { note(web, time.Time{}, false, at(90), "?") }, []string{"d"}, nil, nil},
	} {
		step.act()
		var serve, drain, may []string
		for _, node := range []string{"a", "b", "c", "d"} {
			to := traffic.toNode([]string{node})
			if to.serves {
				serve = append(serve, node)
			}
			if to.drains {
				drain = append(drain, node)
			}
			if to.held {
				may = append(may, node)
			}
		}
		if !slices.Equal(serve, step.serve) || !slices.Equal(drain, step.drain) || !slices.Equal(may, step.may) {
			t.Errorf("%s: %v serve, %v drain, %v may be held, want %v, %v, %v", step.name, serve, drain, may, step.serve, step.drain, step.may)
		}
	}
	traffic.forget(mark.ServiceName(web))
	if len(traffic.serving)+len(traffic.draining)+len(traffic.held)+len(traffic.services) > 0 {
		t.Errorf("something is left of Services that are gone: %+v", traffic)
	}
}

// takes is a plan that gives connections to one node.
type takes struct{ nothing }

func (takes) Steps() []driver.Step                                { return []driver.Step{{}} }
func (takes) Wanted() []string                                    { return []string{testkube.InstanceOf("a")} }
func (takes) Describe(*corev1.Service) ([]driver.Listening, bool) { return nil, false }

// TestAnnounce: a plan gives a node connections while its condition is being written as False, which the cache does not show yet, or once
// it is False and somebody else writes the Node at the same time. It is True first.
func TestAnnounce(t *testing.T) {
	t.Parallel()
	for _, shown := range []bool{false, true} {
		kube := testkube.NewClientset()
		factory := informers.NewSharedInformerFactory(kube, 0)
		w := newTrafficWriter(Options{
			Client: kube, Nodes: factory.Core().V1().Nodes(), Services: factory.Core().V1().Services(), InstanceID: testkube.InstanceID,
		}, nil)
		node := testkube.Node("a")
		node.ResourceVersion = "7"
		status := corev1.ConditionTrue
		if shown {
			status = corev1.ConditionFalse
		}
		node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{Type: ConditionTraffic, Status: status})
		testkit.Must(kube.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{}))(t)
		testkit.Check(t, factory.Core().V1().Nodes().Informer().GetIndexer().Add(node))

		var written []corev1.ConditionStatus
		announce := func() {
			w.prepare([]*corev1.Node{node}, nil, time.Now())
			w.announce(context.Background(), testService("web"), takes{}, func() bool { return false })
		}
		kube.ReactionChain = slices.Insert(kube.ReactionChain, 0, clienttesting.Reactor(&clienttesting.SimpleReactor{
			Verb: "patch", Resource: "nodes", Reaction: func(action clienttesting.Action) (bool, runtime.Object, error) {
				patch, _ := action.(clienttesting.PatchAction) //nolint:errcheck // it is one
				var change corev1.Node
				testkit.Check(t, json.Unmarshal(patch.GetPatch(), &change))
				if shown && change.ResourceVersion != "" {
					return true, nil, apierrors.NewConflict(corev1.Resource("nodes"), "a", nil)
				}
				written = append(written, trafficStatus(&change))
				if written[0] == corev1.ConditionFalse && len(written) == 1 && len(w.shownOut) == 0 {
					t.Error("a plan that is made now does not know of the write")
				}
				return true, node, nil
			},
		}))
		if !shown {
			w.note(testService("shop"), time.Now(), true, time.Time{}, func() iter.Seq2[string, bool] {
				return func(yield func(string, bool) bool) { yield(testkube.InstanceOf("a"), false) }
			})
			testkit.Check(t, w.write(t.Context(), "a"))
		}
		announce()
		if want := []corev1.ConditionStatus{corev1.ConditionFalse, corev1.ConditionTrue}; !slices.Equal(written, want) && !shown ||
			shown && !slices.Equal(written, want[1:]) {
			t.Errorf("shown %v: written %v", shown, written)
		}
	}
}
