package bench

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
)

// storm follows the backend servers of all vServer groups, through the calls that change them, since some of the instances are dead.
type storm struct {
	members map[string]map[string]bool // instances by group
	dead    map[string]bool
	// left is how many dead members there are, live how many others each group has.
	left int
	live map[string]int
	// out is when each dead member left, removals how many calls of each action took some out.
	out      []time.Time
	removals map[string]int
	// empty are the groups that had no live member at a time.
	empty map[string]bool
}

func newStorm(members map[string][]string, dead map[string]bool) *storm {
	s := &storm{members: map[string]map[string]bool{}, dead: dead, live: map[string]int{}, removals: map[string]int{},
		empty: map[string]bool{}}
	for group, ids := range members {
		s.members[group] = map[string]bool{}
		for _, id := range ids {
			s.put(group, id)
		}
		s.settle(group)
	}
	return s
}

func (s *storm) put(group, id string) {
	if s.members[group][id] {
		return
	}
	s.members[group][id] = true
	if s.dead[id] {
		s.left++
	} else {
		s.live[group]++
	}
}

// drop takes a member out, and reports whether it was a dead one.
func (s *storm) drop(group, id string, at time.Time) bool {
	if !s.members[group][id] {
		return false
	}
	delete(s.members[group], id)
	if !s.dead[id] {
		s.live[group]--
		return false
	}
	s.left--
	s.out = append(s.out, at)
	return true
}

// settle notes a group without a live member.
func (s *storm) settle(group string) {
	if s.live[group] == 0 {
		s.empty[group] = true
	}
}

// follow does what a call did.
func (s *storm) follow(call emulator.Call) error {
	group := call.Parameters["VServerGroupId"]
	if call.Code != "" || s.members[group] == nil {
		return nil
	}
	var gone, come []string
	var err error
	switch call.Action {
	case "AddVServerGroupBackendServers":
		come, err = serversIn(call, "BackendServers")
	case "RemoveVServerGroupBackendServers":
		gone, err = serversIn(call, "BackendServers")
	case "ModifyVServerGroupBackendServers":
		gone, err = serversIn(call, "OldBackendServers")
		if err == nil {
			come, err = serversIn(call, "NewBackendServers")
		}
	}
	if err != nil {
		return err
	}
	removes := false
	for _, id := range gone {
		removes = s.drop(group, id, call.Time) || removes
	}
	if removes {
		s.removals[call.Action]++
	}
	for _, id := range come {
		s.put(group, id)
	}
	s.settle(group)
	return nil
}

// serversIn lists the instances that a parameter of a call names.
func serversIn(call emulator.Call, parameter string) ([]string, error) {
	var servers []struct {
		ID string `json:"ServerId"`
	}
	if err := json.Unmarshal([]byte(call.Parameters[parameter]), &servers); err != nil {
		return nil, fmt.Errorf("decode %s of %s: %w", parameter, call.Action, err)
	}
	ids := make([]string, len(servers))
	for i, server := range servers {
		ids[i] = server.ID
	}
	return ids, nil
}

// after returns how long after a time each dead member left.
func (s *storm) after(since time.Time) []time.Duration {
	delays := make([]time.Duration, len(s.out))
	for i, at := range s.out {
		delays[i] = at.Sub(since)
	}
	return delays
}
