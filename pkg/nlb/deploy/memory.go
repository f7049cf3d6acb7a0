package deploy

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/waits"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/model"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/refusal"
)

// serverPause is how long a backend server is left out that the cloud refused, for itself or because a quota is used up. Only servers that
// leave make room at once, see [Memory.noteRoom]; people who raise a quota take longer.
var serverPause = refusal.Pause{First: 5 * time.Minute, Least: 10 * time.Minute, Longest: waits.LoadBalancerFull}

// Memory is what calls of all Services have shown. Its zero value knows nothing.
type Memory struct {
	// Creations has Services take turns while the quota of NLBs is used up.
	Creations refusal.Creations
	// noTCPSSL says that the cloud takes no server groups of TCPSSL.
	noTCPSSL atomic.Bool
	servers  refusal.Refusals[serverOf]
	// vacancies are listeners that were deleted for others, and replacements those others that the cloud refuses.
	vacancies    vacancies
	replacements refusal.Refusals[string]
	work         refusal.Refusals[workOf]
	attempts     refusal.Attempts
	uses         refusal.Uses // server groups and security groups that are not deleted because something uses them
	// crowded are groups by their ids, see [Memory.Crowded], and otherCause load balancers that take no further listener whatever servers it
	// has.
	crowded, otherCause refusal.Refusals[string]
	// filling are groups whose listeners the cloud took without servers only: they get some as soon as others have given some up.
	filling refusal.Refusals[string]
	// exchanges are what was taken away from load balancers for something else, see [Applier.giveBack].
	exchanges exchanges
	// moves are groups that listeners are to leave, see [Memory.Moves], and stays load balancers on which no listener gets another group
	// although there is room.
	moves, stays refusal.Refusals[string]
}

// serverOf is a backend server in a group.
type serverOf struct {
	group string
	alicloud.NLBServerKey
}

// refuseServer notes that the cloud refused a server.
func (m *Memory) refuseServer(group string, server alicloud.NLBServerKey, err error) {
	now, pause := time.Now(), serverPause
	if m.filling.Err(group, now) != nil {
		pause = fillingPause
	}
	m.servers.Add(serverOf{group, server}, err, pause, now)
}

// noteRoom notes that servers leave, and one of the groups of a load balancer: others fit in that a quota kept out of these groups, and the
// same servers into groups of others.
func (m *Memory) noteRoom(groups []model.Group, leaving []alicloud.NLBServer) {
	m.servers.DropFunc(func(server serverOf, err error) bool {
		isIts := func(g model.Group) bool { return g.ID == server.group }
		isIt := func(s alicloud.NLBServer) bool { return s.ID == server.ID }
		return alicloud.IsQuota(err) && (slices.ContainsFunc(groups, isIts) || slices.ContainsFunc(leaving, isIt))
	})
}

// acceptableServers returns the servers that the cloud did not refuse in the last minutes, and those that it did.
func (m *Memory) acceptableServers(group string, servers []alicloud.NLBServer) (wanted []alicloud.NLBServer, left *leftOut) {
	now := time.Now()
	left = &leftOut{fills: m.filling.Err(group, now) != nil}
	for i := range servers {
		if err := m.servers.Err(serverOf{group, servers[i].NLBServerKey}, now); err != nil {
			left.addServer(servers[i], err)
			continue
		}
		wanted = append(wanted, servers[i])
	}
	return wanted, left
}

// leftOut are servers that a step leaves out.
type leftOut struct {
	names []string
	last  error
	fills bool
}

func (l *leftOut) addServer(server alicloud.NLBServer, err error) {
	l.names, l.last = append(l.names, server.ID), err
}

func (l *leftOut) asError() error {
	if len(l.names) == 0 {
		return nil
	}
	return &leftOutError{l.names, l.last, l.fills}
}
