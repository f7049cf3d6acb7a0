package fabric

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

// member is a backend that can be tried: where it is, and how much it should get.
type member struct {
	instanceID, addr string
	weight           int
}

// ErrNoMember means that a listener has nobody to send a connection to.
var ErrNoMember = errors.New("no member of the vServer group can be reached")

// balance opens a connection to a member of a listener's group. A member that refuses is skipped and the next one tried.
func (f *Fabric) balance(ctx context.Context, key socketKey) (net.Conn, error) {
	members := f.members(key)
	errs := []error{ErrNoMember}
	for len(members) > 0 {
		m := f.balancers.pick(key, members)
		c, err := f.dialMachine(ctx, m.instanceID, "tcp", m.addr)
		if err == nil {
			return c, nil
		}
		errs = append(errs, err)
		if ctx.Err() != nil {
			break
		}
		members = without(members, m)
	}
	return nil, fmt.Errorf("listener %s of %s: %w", key, key.lb, errors.Join(errs...))
}

// members are the backends that new connections may go to: weight above 0 and the machine running.
func (f *Fabric) members(key socketKey) []member {
	var members []member
	f.store.View(func() {
		lb, ok := f.store.LoadBalancers.Get(key.lb)
		if !ok {
			return
		}
		l, ok := lb.Listeners[key.ListenerKey]
		if !ok || !carries(lb, l, time.Now()) {
			return
		}
		g, ok := f.store.ServerGroups.Get(l.ServerGroupID)
		if !ok {
			return
		}
		for _, b := range g.Backends {
			if m, ok := f.member(lb, b, time.Now()); ok && b.Weight > 0 {
				members = append(members, m)
			}
		}
	})
	return members
}

// member resolves a backend to a running machine: an ecs member is the instance's own address, an eni member an address
// of an interface, and anything else is found as the VPC's system route table says.
func (f *Fabric) member(lb *cloud.LoadBalancer, b cloud.Backend, now time.Time) (member, bool) {
	m := member{addr: net.JoinHostPort(b.ServerIP, strconv.Itoa(b.Port)), weight: b.Weight}
	switch b.Type {
	case "ecs":
		m.instanceID = b.ServerID
		if i, ok := f.store.Instances.Get(b.ServerID); ok {
			m.addr = net.JoinHostPort(i.PrivateIP, strconv.Itoa(b.Port))
		}
	case "eni":
		if eni, ok := f.store.Interfaces.Get(b.ServerID); ok {
			m.instanceID = eni.InstanceID
		}
	default:
		m.instanceID = f.routedTo(lb, b.ServerIP, now)
	}
	_, reason := f.machine(m.instanceID, now)
	return m, reason == ""
}

// routedTo finds the instance that the first route table of the load balancer's VPC sends an address to.
func (f *Fabric) routedTo(lb *cloud.LoadBalancer, ip string, now time.Time) string {
	host, _, err := split(net.JoinHostPort(ip, "0"))
	if err != nil {
		return ""
	}
	for _, t := range f.store.TablesOf(lb.VPCID) {
		next, reason := f.route(t, host, now)
		if reason == "" {
			return next.instanceID
		}
	}
	return ""
}

func without(members []member, tried member) []member {
	left := make([]member, 0, len(members)-1)
	for _, m := range members {
		if m.addr != tried.addr {
			left = append(left, m)
		}
	}
	return left
}

// balancers hold the turn of every listener. The zero value is ready.
type balancers struct {
	mu    sync.Mutex
	turns map[socketKey]map[string]int // guarded by mu
}

// pick chooses by smooth weighted round robin: everyone's turn grows by its weight, the largest goes and pays the total.
// That spreads the heavy ones instead of serving them in a row.
func (b *balancers) pick(key socketKey, members []member) member {
	b.mu.Lock()
	defer b.mu.Unlock()
	turn, total, best := b.turns[key], 0, 0
	fresh := make(map[string]int, len(members))
	for i, m := range members {
		total += m.weight
		fresh[m.addr] = turn[m.addr] + m.weight
		if fresh[m.addr] > fresh[members[best].addr] {
			best = i
		}
	}
	fresh[members[best].addr] -= total
	if b.turns == nil {
		b.turns = map[socketKey]map[string]int{}
	}
	b.turns[key] = fresh
	return members[best]
}

func (b *balancers) forget(key socketKey) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.turns, key)
}
