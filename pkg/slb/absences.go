package slb

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// defaultGoneOver is how long a CLB must be missing, by id and by tag, before it counts as gone. Replicas and the index of tags
	// lag by a second or so.
	defaultGoneOver = 5 * time.Second
	// brakeWindow and brakeServices: so many Services do not lose their CLBs within a minute by accident. More likely the key is
	// that of another account or sees another resource group, and replacements would change every address.
	brakeWindow   = time.Minute
	brakeServices = 3
)

// absences knows which Services miss their CLB and which do not, over all Services of an engine.
type absences struct {
	mu sync.Mutex // guards the rest
	// since is when a CLB of a Service counted as gone, witnesses are CLBs that were seen, by Service.
	since     map[types.UID]time.Time
	witnesses map[types.UID]string
}

// found notes that the CLB of a Service exists.
func (m *absences) found(service types.UID, id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.witnesses == nil {
		m.witnesses, m.since = map[types.UID]string{}, map[types.UID]time.Time{}
	}
	m.witnesses[service] = id
	delete(m.since, service)
}

// forget drops a Service.
func (m *absences) forget(service types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.witnesses, service)
	delete(m.since, service)
}

// confirm agrees that the CLB of a Service is gone. It first reads an object that must exist: another Service's CLB, or the VPC, which
// the account of a wrong access key does not have. When several Services lose theirs within a minute, nothing else will do.
func (m *absences) confirm(ctx context.Context, e *engine, service types.UID, now time.Time) error {
	count, witness := m.note(service, now)
	var err error
	if witness != "" {
		if _, err = e.api.DescribeLoadBalancer(ctx, witness); err == nil {
			return nil
		}
	}
	if count < brakeServices || witness == "" {
		err = e.ownAccount(ctx)
	}
	if err == nil {
		return nil
	}
	if count == 1 {
		return fmt.Errorf("the CLB of the Service is missing, and no other object can be read either: nothing is created in its place: %w", err)
	}
	return fmt.Errorf("%d Services miss their CLBs within a minute, and no other object can be read either: nothing is created in their place: %w", count, err)
}

// ownAccount fails if the VPC of the cluster cannot be read.
func (e *engine) ownAccount(ctx context.Context) error {
	if e.config.VPCID == "" {
		return nil
	}
	blocks, err := e.api.DescribeVPCBlocks(ctx, e.config.VPCID)
	if err == nil && len(blocks) == 0 {
		return fmt.Errorf("the account of the access key does not have the VPC %s", e.config.VPCID)
	}
	return err
}

// note returns how many Services lost their CLBs within [brakeWindow], and a CLB of another one.
func (m *absences) note(service types.UID, now time.Time) (count int, witness string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.since == nil {
		m.witnesses, m.since = map[types.UID]string{}, map[types.UID]time.Time{}
	}
	delete(m.witnesses, service)
	if _, noted := m.since[service]; !noted {
		m.since[service] = now
	}
	for uid, at := range m.since {
		if now.Sub(at) > brakeWindow {
			delete(m.since, uid)
		}
	}
	for _, id := range m.witnesses {
		return len(m.since), id
	}
	return len(m.since), ""
}
