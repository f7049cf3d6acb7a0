package service

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// GoneOver is how long a load balancer must be missing, by id and by tag, before it counts as gone. Replicas and the index of tags
	// lag by a second or so.
	GoneOver = 5 * time.Second
	// BrakeServices is how many Services do not lose their load balancers within a minute by accident. More likely the key is that of
	// another account or sees another resource group, and replacements would change every address.
	BrakeServices = 3
	brakeWindow   = time.Minute
)

// Absences knows which Services of a product miss their load balancer and which do not. Its zero value knows nothing.
type Absences struct {
	mu sync.Mutex // guards the rest
	// since is when a load balancer of a Service counted as gone, witnesses are load balancers that were seen, by Service.
	since     map[types.UID]time.Time
	witnesses map[types.UID]string
}

// Control reads what must exist, to show that reads see the account of the cluster.
type Control struct {
	// Product is the name of the product, for texts.
	Product string
	// Read reads a load balancer by its id. One that does not exist is an error.
	Read func(ctx context.Context, id string) error
	// Network and VPCID are the VPC of the cluster, which the account of a wrong access key does not have. An empty VPCID proves nothing.
	Network VPCReader
	VPCID   string
}

// Found notes that the load balancer of a Service exists.
func (m *Absences) Found(service types.UID, id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.initLocked()
	m.witnesses[service] = id
	delete(m.since, service)
}

// Forget drops a Service.
func (m *Absences) Forget(service types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.witnesses, service)
	delete(m.since, service)
}

// Confirm agrees that the load balancer of a Service is gone. It first reads an object that must exist: another Service's load balancer,
// or the VPC. When several Services lose theirs within a minute, nothing but another load balancer will do, if any was seen.
func (m *Absences) Confirm(ctx context.Context, control Control, service types.UID, now time.Time) error {
	count, witness := m.note(service, now)
	var err error
	if witness != "" {
		if err = control.Read(ctx, witness); err == nil {
			return nil
		}
	}
	if count < BrakeServices || witness == "" {
		err = control.ownAccount(ctx)
	}
	if err == nil {
		return nil
	}
	if count == 1 {
		return fmt.Errorf("the %s of the Service is missing, and no other object can be read either: nothing is created in its place: %w", control.Product, err)
	}
	return fmt.Errorf("%d Services miss their %ss within a minute, and no other object can be read either: nothing is created in their place: %w", count, control.Product, err)
}

// ownAccount fails if the VPC of the cluster cannot be read.
func (c Control) ownAccount(ctx context.Context) error {
	if c.VPCID == "" {
		return nil
	}
	blocks, err := c.Network.DescribeVPCBlocks(ctx, c.VPCID)
	if err == nil && len(blocks) == 0 {
		return fmt.Errorf("the account of the access key does not have the VPC %s", c.VPCID)
	}
	return err
}

func (m *Absences) initLocked() {
	if m.witnesses == nil {
		m.witnesses, m.since = map[types.UID]string{}, map[types.UID]time.Time{}
	}
}

// note returns how many Services lost their load balancers within [brakeWindow], and a load balancer of another one.
func (m *Absences) note(service types.UID, now time.Time) (count int, witness string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.initLocked()
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
