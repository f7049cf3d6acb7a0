package deploy

import (
	"maps"
	"sync"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// refusedFor is how long a backend server is left out that the cloud refused.
const refusedFor = 5 * time.Minute

// Memory is what calls of all Services have shown. Its zero value knows nothing.
type Memory struct {
	mu sync.Mutex // guards the rest
	// noTCPSSL says that the cloud takes no server groups of TCPSSL.
	noTCPSSL bool
	refused  map[refusal]refused
}

type refusal struct {
	group string
	alicloud.NLBServerKey
}

type refused struct {
	until time.Time
	err   error
}

func (m *Memory) refusesTCPSSL() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.noTCPSSL
}

func (m *Memory) noteTCPSSL() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.noTCPSSL = true
}

func (m *Memory) refuse(group string, server alicloud.NLBServerKey, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.refused == nil {
		m.refused = map[refusal]refused{}
	}
	m.refused[refusal{group, server}] = refused{time.Now().Add(refusedFor), err}
}

// room notes that servers leave a group, so that others fit in that a quota kept out.
func (m *Memory) room(group string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(m.refused, func(at refusal, before refused) bool { return at.group == group && alicloud.IsQuota(before.err) })
}

// leftOut are servers that a step leaves out.
type leftOut struct {
	names []string
	last  error
}

func (l *leftOut) add(server alicloud.NLBServer, err error) {
	l.names, l.last = append(l.names, server.ID), err
}

func (l *leftOut) err() error {
	if len(l.names) == 0 {
		return nil
	}
	return &leftOutError{l.names, l.last}
}

// acceptable returns the servers that the cloud did not refuse in the last minutes, and those that it did.
func (m *Memory) acceptable(group string, servers []alicloud.NLBServer) ([]alicloud.NLBServer, *leftOut) {
	m.mu.Lock()
	defer m.mu.Unlock()
	left := &leftOut{}
	var wanted []alicloud.NLBServer
	now := time.Now()
	for i := range servers {
		at := refusal{group, servers[i].NLBServerKey}
		before, ok := m.refused[at]
		if ok && now.Before(before.until) {
			left.add(servers[i], before.err)
			continue
		}
		delete(m.refused, at)
		wanted = append(wanted, servers[i])
	}
	return wanted, left
}
