package presence

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/absence"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/waits"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

const (
	// BrakeServices is how many Services do not lose their load balancers within a minute by accident. More likely the key is that of
	// another account or sees another resource group, and replacements would change every address.
	BrakeServices = 3
	brakeWindow   = time.Minute
)

// Absences decides for a product which load balancers are gone. It knows which Services miss theirs and which do not.
type Absences struct {
	// Over is how long a load balancer must be missing before it counts as gone, by default [waits.LoadBalancerMissing].
	Over    time.Duration
	control control

	mu sync.Mutex // guards the rest
	// since is when a load balancer of a Service counted as gone, witnesses are load balancers that were seen, by Service.
	since     map[types.UID]time.Time
	witnesses map[types.UID]string
}

// control reads what must exist, to show that reads see the account of the cluster.
type control struct {
	// product is its name, for texts.
	product string
	// read reads a load balancer by its id. One that does not exist is an error.
	read func(ctx context.Context, id string) error
	// network and vpcID are the VPC of the cluster, which the account of a wrong access key does not have. An empty vpcID proves nothing.
	network Network
	vpcID   string
}

// Network reads the address blocks of a VPC, none for one that the account does not have.
type Network interface {
	DescribeVPCBlocks(ctx context.Context, vpcID string) ([]netip.Prefix, error)
}

// Absence is that a search by id and by tag found no load balancer of a Service. Its zero value is to be confirmed.
type Absence struct {
	Service types.UID
	// ID is the load balancer that the Service had, empty where there was none or its id is not known.
	ID string
	// NeverCreated says that there is no sign of a load balancer of the Service, so that none can be missing.
	NeverCreated bool
	// MaybeCreated says that there may be one whose id is not known, as long as the absence is not proven.
	MaybeCreated bool
}

// NewAbsences returns what decides for a product. read reads a load balancer by its id, and fails for one that does not exist. network and
// vpcID are the VPC of the cluster; an empty vpcID proves nothing.
func NewAbsences[T any](product string, read func(ctx context.Context, id string) (T, error), network Network, vpcID string) *Absences {
	exists := func(ctx context.Context, id string) error {
		_, err := read(ctx, id)
		return err
	}
	return &Absences{
		Over: waits.LoadBalancerMissing, control: control{product: product, read: exists, network: network, vpcID: vpcID},
		since: map[types.UID]time.Time{}, witnesses: map[types.UID]string{},
	}
}

// rule is when a load balancer, or something of it, counts as missing.
func (m *Absences) rule() absence.Rule { return absence.Rule{Answers: 2, Over: m.Over} }

// Decide says what an absence means for what is known of a load balancer. It is gone if nobody ever began to create one, if this process
// removed it, or if it was missing twice over some seconds and something else that must exist can be read. Until then it is unknown, with
// an error that says why. One answer proves nothing: a search may be empty because tags are indexed late or were removed, and a replica
// may not know a load balancer yet.
func (m *Absences) Decide(ctx context.Context, known Presence, a Absence) (Presence, error) {
	switch {
	case known.released:
		return known.asGone(a, wasReleased), nil
	case a.NeverCreated:
		return known.asGone(a, neverCreated), nil
	}
	now := time.Now()
	row := known.missing.Lacking(now, m.rule())
	doubt := known.asMissing(a, row)
	if !row.Proves(m.rule()) {
		return doubt, m.unprovenError(a.ID, m.Over-now.Sub(row.First))
	}
	if known.deleted {
		return known.asGone(a, wasDeleted), nil
	}
	if err := m.confirmGone(ctx, a.Service, now); err != nil {
		return doubt, err
	}
	return known.asGone(a, confirmed), nil
}

// Unproven is the error after a call said that a load balancer does not exist.
func (m *Absences) Unproven(id string) error { return m.unprovenError(id, m.Over) }

func (m *Absences) unprovenError(id string, left time.Duration) error {
	return &problem.WaitError{Reason: fmt.Sprintf("%s %s not found; waiting for a second confirmation", m.control.product,
		cmp.Or(id, "of the Service")), For: left}
}

// Found notes that the load balancer of a Service exists.
func (m *Absences) Found(service types.UID, id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
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

// confirmGone agrees that the load balancer of a Service is gone. It first reads an object that must exist: another Service's load
// balancer, or the VPC. When several Services lose theirs within a minute, nothing but another load balancer will do, if any was seen.
func (m *Absences) confirmGone(ctx context.Context, service types.UID, now time.Time) error {
	count, witness := m.noteLoss(service, now)
	var err error
	if witness != "" {
		if err = m.control.read(ctx, witness); err == nil {
			return nil
		}
	}
	if count < BrakeServices || witness == "" {
		err = m.control.ownAccount(ctx)
	}
	if err == nil {
		return nil
	}
	if count == 1 {
		return fmt.Errorf("the %s of the Service is missing, and no other object can be read either: nothing is created in its place: %w",
			m.control.product, err)
	}
	return fmt.Errorf("%d Services lost their %ss within a minute, and no other object can be read either: nothing is created in their place: %w", count, m.control.product, err)
}

// ownAccount fails if the VPC of the cluster cannot be read.
func (c control) ownAccount(ctx context.Context) error {
	if c.vpcID == "" {
		return nil
	}
	blocks, err := c.network.DescribeVPCBlocks(ctx, c.vpcID)
	if err == nil && len(blocks) == 0 {
		return fmt.Errorf("the account of the access key does not have the VPC %s", c.vpcID)
	}
	return err
}

// noteLoss returns how many Services lost their load balancers within [brakeWindow], and a load balancer of another one.
func (m *Absences) noteLoss(service types.UID, now time.Time) (count int, witness string) {
	m.mu.Lock()
	defer m.mu.Unlock()
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
