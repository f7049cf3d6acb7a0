// Package cloud is the state of one account in one region: the resources of all products, under one lock, with the
// rules that concern more than one product (addresses of a vSwitch, who owns an id, when a status changes).
//
// It does not know actions or parameters; packages ecs, vpc and slb carry those out on it.
package cloud

import (
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Store holds every resource. All fields but those named below mu are fixed after New.
type Store struct {
	Region    string
	AccountID string
	Settle    time.Duration
	// Roles are the names of the account's RAM roles.
	Roles []string
	// Health is what the network's checks of a listener have found out about a backend server; checked is false when nothing is
	// checked. It runs under the lock. Nil means that there is no network.
	Health func(l ListenerID, b BackendID) (found Health, checked bool)

	// mu guards everything below. Actions get it from View and Update; nothing else locks it. Readers share it, which
	// together with encoding outside the lock carries the read rate of a controller under test.
	mu sync.RWMutex

	// Limits and Switches may change while the emulator runs.
	Limits Limits
	Switches

	Instances     Table[*Instance]
	Interfaces    Table[*Interface]
	VPCs          Table[*VPC]
	VSwitches     Table[*VSwitch]
	RouteTables   Table[*RouteTable]
	LoadBalancers Table[*LoadBalancer]
	ServerGroups  Table[*ServerGroup]
	EIPs          Table[*EIP]
	Certificates  Table[*Certificate]
	ACLs          Table[*ACL]
	Extensions    Table[*DomainExtension]
	// BandwidthPackages and SecurityPolicies are those of the config.
	BandwidthPackages, SecurityPolicies []string

	NLBs           Table[*NLB]
	NLBListeners   Table[*NLBListener]
	NLBGroups      Table[*NLBGroup]
	NLBJobs        Table[*NLBJob]
	SecurityGroups Table[*SecurityGroup]

	// Tokens remembers the results of calls with a ClientToken.
	Tokens Tokens

	inUse     map[string]int
	seq       int64
	publicIPs int
	// byIP finds an interface by "vpc/address", so that a lookup of 100 addresses does not read 10,000 instances.
	byIP map[string]*Interface
	// attached counts, by server and load balancer, how often the one is a backend of the other.
	attached map[string]map[string]int

	// ahead is how far the clock of the cloud is ahead of that of the host, in nanoseconds.
	ahead atomic.Int64

	change chan struct{}
	// timers announce changes of status; each is due at a time of the cloud.
	timers  map[*time.Timer]time.Time
	stopped bool
}

// Object is what every resource has: an id and its place in the order of creation, which is the order of lists.
type Object struct {
	ID      string
	Seq     int64
	Created time.Time
}

// Key returns the id and the sequence number.
func (o *Object) Key() (string, int64) { return o.ID, o.Seq }

// View runs f under the shared lock.
func (s *Store) View(f func()) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	f()
}

// Update runs f under the exclusive lock and then wakes everybody who waits on Changed.
func (s *Store) Update(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
	s.notifyLocked()
}

// Changed returns a channel that is closed at the next change. Take it before reading the state, then wait on it.
func (s *Store) Changed() <-chan struct{} {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.change
}

func (s *Store) notifyLocked() {
	close(s.change)
	s.change = make(chan struct{})
}

// Close stops the timers that announce settled states.
func (s *Store) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	for t := range s.timers {
		t.Stop()
	}
	clear(s.timers)
}

// NewObject makes the identity of a resource created now.
func (s *Store) NewObject(prefix string) Object { return s.objectWithID(NewID(prefix)) }

func (s *Store) objectWithID(id string) Object {
	s.seq++
	return Object{ID: id, Seq: s.seq, Created: s.Now()}
}

// NewID makes an id like lb-7k2m….
func NewID(prefix string) string { return prefix + "-" + strings.ToLower(rand.Text()[:20]) }

// Phase is a status that changes by itself once its time has come.
type Phase struct {
	now, then string
	at        time.Time
}

// Steady is a status that stays.
func Steady(status string) Phase { return Phase{then: status} }

// Begin enters the status now and, after the settle time, then. With a settle time of 0 it is then at once.
func (s *Store) Begin(now, then string, t time.Time) Phase {
	return s.BeginFor(now, then, t, s.Settle)
}

// BusyFrom is when a change that starts now will have settled.
func (s *Store) BusyFrom(now time.Time) time.Time { return now.Add(s.Settle) }

// At returns the status at a moment.
func (p Phase) At(t time.Time) string {
	if t.Before(p.at) {
		return p.now
	}
	return p.then
}

// End is the status that the phase ends in.
func (p Phase) End() string { return p.then }

// Settled reports whether the status no longer changes by itself.
func (p Phase) Settled(t time.Time) bool { return !t.Before(p.at) }

// Hold marks resources as busy. It reports false, and marks nothing, when one of them already is.
func (s *Store) Hold(keys []string) bool {
	if s.InUse(keys) {
		return false
	}
	for _, k := range keys {
		s.inUse[k]++
	}
	return true
}

// InUse reports whether one of the resources is busy.
func (s *Store) InUse(keys []string) bool {
	return slices.ContainsFunc(keys, func(k string) bool { return s.inUse[k] > 0 })
}

// Release ends a Hold.
func (s *Store) Release(keys []string) {
	for _, k := range keys {
		if s.inUse[k]--; s.inUse[k] <= 0 {
			delete(s.inUse, k)
		}
	}
}

// Timestamp is the form of CreateTime fields.
func Timestamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05Z") }

// NewPublicIP hands out addresses of 198.18.0.0/15 and 2001:db8:ffff::/48, which are reserved for tests and examples and route
// nowhere.
func (s *Store) NewPublicIP(ipv6 bool) string {
	s.publicIPs++
	n := s.publicIPs
	if ipv6 {
		return fmt.Sprintf("2001:db8:ffff::%x:%x", n>>16+1, n&0xffff)
	}
	return fmt.Sprintf("198.%d.%d.%d", 18+(n>>16)&1, (n>>8)&0xff, n&0xff)
}
