package deploy

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/model"
)

// replace are the steps that have a TCPSSL listener on group b take the place of the one that there has.
func replace() []model.Step {
	wanted := newListener(80, "b")
	wanted.Listener.Protocol = alicloud.NLBTCPSSL
	old := oldListener(model.OpDeleteListener, 80)
	group := "sgp-a"
	old.Listener.ServerGroupID = &group
	old.Successor, old.Group = &wanted.Listener, alicloud.NLBGroup{Name: "b"}
	return []model.Step{old, wanted}
}

// pass carries out what leads to the other listener, and afterwards the old group away. Nothing is under way any more when it begins.
func pass(t *testing.T, cloud *recorder, memory *Memory, observed *model.Model, held error) (*model.Model, error) {
	t.Helper()
	steps := replace()
	if observed.Listener("tcp:80") == nil {
		steps = append(steps[1:], onServers(model.OpDeleteGroup, "a"))
	}
	a := applier(cloud, memory, observed)
	a.Held = func(work Work) error {
		if work.Op == model.OpCreateListener {
			return held
		}
		return nil
	}
	err := a.Run(t.Context(), model.Plan{Steps: steps})
	return a.Model, err
}

// TestReplacementIsTriedFirst: a listener goes only for one that the cloud takes, as far as it says so beforehand. One that it refuses is
// not asked for in each pass.
func TestReplacementIsTriedFirst(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, answers string
		deletes       bool
		// again are the calls of the next pass after a refusal.
		again int
	}{
		{"taken", "", true, 0},
		{"the port is in use, by the one that goes", "Conflict.Port", true, 0},
		{"the quota of listeners is used up", "QuotaExceeded.ListenersNum", true, 0},
		{"a certificate that does not exist", "ResourceNotFound.Certificate", false, 0},
		{"no permission", "Forbidden.RAM", false, 0},
		{"rate used up", "Throttling.User", false, 1},
		{"an operation locks the NLB", "Conflict.Lock", false, 1},
		{"nobody knows", "InternalError", false, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			cloud := recorder{refuses: map[string]error{}}
			want := []string{"TryNLBListener 80 sgp-b"}
			if test.answers != "" {
				cloud.refuses["Try"] = answer(test.answers)
				want[0] += " = " + test.answers
			}
			if test.deletes {
				want = append(want, "DeleteNLBListener lsn-old")
			}
			var memory Memory
			observed, err := pass(t, &cloud, &memory, there(group("a", "i-1"), group("b", "i-1")), nil)
			if diff := cmp.Diff(want, cloud.calls); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
			if (err == nil) != test.deletes {
				t.Errorf("error %v", err)
			}
			if cloud.calls = nil; !test.deletes {
				if _, err = pass(t, &cloud, &memory, observed, nil); len(cloud.calls) != test.again || err == nil {
					t.Errorf("the next pass called %v, error %v", cloud.calls, err)
				}
			}
		})
	}
}

// TestReplacedListenerComesBack: the cloud says only at the creation, or its job fails, that it does not take the other listener. Then the
// one before serves again, its group is still there, and the other one is tried again later.
func TestReplacedListenerComesBack(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, code string
		held       error
		want       []string
		isBack     bool
	}{
		{"refused", "ResourceNotFound.Certificate", nil,
			[]string{"CreateNLBListener 80 sgp-b = ResourceNotFound.Certificate", "CreateNLBListener 80 sgp-a"}, true},
		{"its job failed", "", errors.New("its job failed"), []string{"CreateNLBListener 80 sgp-a"}, true},
		{"rate used up: its time comes", "Throttling.User", nil, []string{"CreateNLBListener 80 sgp-b = Throttling.User"}, false},
		{"nobody knows", "InternalError", nil, []string{"CreateNLBListener 80 sgp-b = InternalError"}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				cloud := recorder{refuses: map[string]error{"Try": answer("Conflict.Port"), "CreateNLBListener 80 sgp-b": answer(test.code)}}
				var memory Memory
				observed, err := pass(t, &cloud, &memory, there(group("a", "i-1"), group("b", "i-1")), nil)
				if err != nil || observed.Listener("tcp:80") != nil {
					t.Fatalf("listener %v, error %v", observed.Listener("tcp:80"), err)
				}
				cloud.calls = nil
				observed, err = pass(t, &cloud, &memory, observed, test.held)
				if diff := cmp.Diff(test.want, cloud.calls); diff != "" || err == nil {
					t.Errorf("error %v, calls (-want +got):\n%s", err, diff)
				}
				if back := observed.Listener("tcp:80"); (back != nil) != test.isBack ||
					back != nil && (*back.ServerGroupID != "sgp-a" || back.Protocol != alicloud.NLBTCP) {
					t.Errorf("the listener is %+v", back)
				}
				if observed.GroupByID("sgp-a") == nil {
					t.Error("its group is gone")
				}
				if !test.isBack {
					return
				}
				for i, want := range []int{0, 2} { // the next one at once, and one after the pause: tried and deleted
					cloud.calls = nil
					if _, err = pass(t, &cloud, &memory, observed, nil); len(cloud.calls) != want {
						t.Errorf("pass %d called %v, error %v", i, cloud.calls, err)
					}
					time.Sleep(replacePause.First)
				}
			})
		})
	}
}

// TestReplacedListenerIsForgotten: once the other listener serves, the group of the one before goes.
func TestReplacedListenerIsForgotten(t *testing.T) {
	t.Parallel()
	var cloud recorder
	var memory Memory
	observed, err := pass(t, &cloud, &memory, there(group("a", "i-1"), group("b", "i-1")), nil)
	if err == nil {
		observed, err = pass(t, &cloud, &memory, observed, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	cloud.calls = nil
	err = applier(&cloud, &memory, observed).Run(t.Context(), model.Plan{Steps: []model.Step{onServers(model.OpDeleteGroup, "a")}})
	if diff := cmp.Diff([]string{"DeleteNLBGroup sgp-a"}, cloud.calls); diff != "" || err != nil {
		t.Errorf("error %v, calls (-want +got):\n%s", err, diff)
	}
}
