package deploy

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/model"
)

// TestWhatShowsThatAnNLBIsFull: the cloud refuses a server of a group whose listener it took without servers, for as long as that counts,
// and nothing else.
func TestWhatShowsThatAnNLBIsFull(t *testing.T) {
	t.Parallel()
	refused := &alicloud.Error{Code: "QuotaExceeded.QuotaInsufficient"}
	withServers, empty := &model.Group{Servers: make([]alicloud.NLBServer, 1)}, &model.Group{}
	withServers.ID, empty.ID = "sgp-1", "sgp-1"
	type creation struct {
		group *model.Group
		err   error
	}
	for name, test := range map[string]struct {
		creations []creation
		after     time.Duration
		full      bool
	}{
		"refused with servers, taken without":         {[]creation{{withServers, refused}, {empty, nil}}, 0, true},
		"the same, minutes ago":                       {[]creation{{withServers, refused}, {empty, nil}}, 10 * time.Minute, false},
		"refused with servers, not tried without":     {[]creation{{withServers, refused}}, 0, false},
		"refused with servers, taken with them":       {[]creation{{withServers, refused}, {withServers, nil}}, 0, false},
		"refused with and without servers":            {[]creation{{withServers, refused}, {empty, refused}, {empty, nil}}, 0, false},
		"refused for another cause a short while ago": {[]creation{{empty, refused}, {withServers, refused}, {empty, nil}}, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				a := &Applier{Memory: &Memory{}, Model: &model.Model{}, Doubts: map[model.Part]string{}}
				for _, c := range test.creations {
					a.noteCrowded(c.group, c.err)
				}
				time.Sleep(test.after)
				for range 2 {
					a.Full = false
					if a.noteFull(empty.ID, refused); a.Full != test.full {
						t.Errorf("full: %v, want %v", a.Full, test.full)
					}
				}
			})
		})
	}
}

// TestWhatShowsThatAMoveIsRefusedForAnotherCause: others have made room for a listener that is to leave its group, and the cloud refuses it
// all the same, although there is room for all servers of the next group.
func TestWhatShowsThatAMoveIsRefusedForAnotherCause(t *testing.T) {
	t.Parallel()
	refused := &alicloud.Error{Code: "QuotaExceeded.QuotaInsufficient"}
	const most = 3
	for _, test := range []struct {
		has, next int
		another   bool
	}{
		{has: most, next: 1},
		{has: most - 1, next: 1, another: true},
		{has: most - 1, next: 2},
		{has: most - 2, next: 2, another: true},
	} {
		synctest.Test(t, func(t *testing.T) {
			a := moving(most, test.has)
			a.noteMove(formerGroup, nextGroup(1), refused)
			a.noteMove(formerGroup, nextGroup(test.next), refused)
			if moves := a.Memory.Moves(formerGroup); moves == test.another {
				t.Errorf("%d servers, %d more: it waits for room: %v", test.has, test.next, moves)
			}
		})
	}
}

// TestTakenMoveShowsThatNothingElseRefuses: the cloud refuses a move of a listener although there is room, and then takes it. The next
// refusal is for want of room again.
func TestTakenMoveShowsThatNothingElseRefuses(t *testing.T) {
	t.Parallel()
	refused := &alicloud.Error{Code: "QuotaExceeded.QuotaInsufficient"}
	synctest.Test(t, func(t *testing.T) {
		a := moving(3, 1)
		for _, err := range []error{refused, refused, nil} {
			a.noteMove(formerGroup, nextGroup(1), err)
		}
		a.MostServers = 1
		a.noteMove(formerGroup, nextGroup(1), refused)
		if !a.Memory.Moves(formerGroup) {
			t.Error("nothing makes room for the move")
		}
	})
}

// formerGroup is the id of the group that a listener is to leave.
const formerGroup = "sgp-1"

// moving is for an NLB with one listener, whose group has so many servers of those that there may be.
func moving(most, has int) *Applier {
	from := formerGroup
	return &Applier{Memory: &Memory{}, MostServers: most, Busy: func(string) bool {
		return false
	}, Doubts: map[model.Part]string{}, Model: &model.Model{
		Listeners: []model.Listener{{NLBListener: alicloud.NLBListener{NLBListenerSettings: alicloud.NLBListenerSettings{ServerGroupID: &from}}}},
		Groups:    []model.Group{{NLBGroup: alicloud.NLBGroup{ID: from}, Servers: make([]alicloud.NLBServer, has)}},
	}}
}

// nextGroup is the group that the listener is to have.
func nextGroup(servers int) *model.Group {
	return &model.Group{NLBGroup: alicloud.NLBGroup{ID: "sgp-2"}, Servers: make([]alicloud.NLBServer, servers)}
}
