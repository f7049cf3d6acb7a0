package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/initor/rollout"
)

var (
	pendingState = rollout.NodeState{Node: "a", Result: rollout.ResultPending, Reason: "there is no pod yet"}
	setState     = rollout.NodeState{Node: "a", Result: rollout.ResultSet, ProviderID: "cn-hangzhou.i-1"}
	failedState  = rollout.NodeState{Node: "b", Result: rollout.ResultFailed, Reason: "metadata is off"}
)

func TestProgressReportsEachNodeOnce(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	p := newProgress(&out)
	p.show([]rollout.NodeState{pendingState, failedState})
	p.show([]rollout.NodeState{setState, failedState})
	p.show([]rollout.NodeState{setState, failedState})
	want := "1/2 b: failed metadata is off\n2/2 a: set cn-hangzhou.i-1\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("progress (-want +got):\n%s", diff)
	}
}

// TestProgressShowsWhyPodsCannotStart: each reason is written once, with how many nodes it holds up, long before the nodes fail.
func TestProgressShowsWhyPodsCannotStart(t *testing.T) {
	t.Parallel()
	blocked := func(node, reason string) rollout.NodeState {
		return rollout.NodeState{Node: node, Result: rollout.ResultPending, Reason: reason, Blocked: true}
	}
	var out strings.Builder
	p := newProgress(&out)
	pull := []rollout.NodeState{blocked("a", "ErrImagePull: not found"), blocked("b", "ErrImagePull: not found"),
		blocked("c", "Unschedulable: too full")}
	p.show(pull)
	p.show(pull)
	want := "waiting: the pod of a and 1 more cannot start: ErrImagePull: not found\nwaiting: the pod of c cannot start: Unschedulable: too full\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("progress (-want +got):\n%s", diff)
	}
}

func TestJudge(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		states   []rollout.NodeState
		finished bool
		want     error
	}{
		{states: nil, finished: true},
		{states: []rollout.NodeState{setState}, finished: true},
		{states: []rollout.NodeState{setState, failedState}, finished: true, want: errNodes},
		{states: []rollout.NodeState{pendingState}, finished: true, want: errNodes},
		{states: []rollout.NodeState{pendingState}},
		{states: []rollout.NodeState{failedState}, want: errNodes},
	} {
		if err := resultOf(test.states, test.finished); !errors.Is(err, test.want) {
			t.Errorf("resultOf(%v, %t) = %v, want %v", test.states, test.finished, err, test.want)
		}
	}
}
