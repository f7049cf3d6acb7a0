package cloud

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"time"
)

// snapshot is the form in which resources are saved. Client tokens, temporary keys and what calls hold are not: they
// belong to callers that are gone.
type snapshot struct {
	Version       int
	Seq           int64
	PublicIPs     int
	VPCs          *Table[*VPC]
	VSwitches     *Table[*VSwitch]
	RouteTables   *Table[*RouteTable]
	Instances     *Table[*Instance]
	Interfaces    *Table[*Interface]
	LoadBalancers *Table[*LoadBalancer]
	ServerGroups  *Table[*ServerGroup]
	EIPs          *Table[*EIP]
	Certificates  *Table[*Certificate]
	ACLs          *Table[*ACL]
	Extensions    *Table[*DomainExtension]

	NLBs           *Table[*NLB]
	NLBListeners   *Table[*NLBListener]
	NLBGroups      *Table[*NLBGroup]
	NLBJobs        *Table[*NLBJob]
	SecurityGroups *Table[*SecurityGroup]
}

// snapshotVersion changes when older files can no longer be read.
const snapshotVersion = 1

// fields ties a snapshot to the store's tables, for saving and restoring alike.
func (s *Store) fields() *snapshot {
	return &snapshot{
		Version: snapshotVersion, Seq: s.seq, PublicIPs: s.publicIPs,
		VPCs: &s.VPCs, VSwitches: &s.VSwitches, RouteTables: &s.RouteTables, Instances: &s.Instances, Interfaces: &s.Interfaces,
		LoadBalancers: &s.LoadBalancers, ServerGroups: &s.ServerGroups, EIPs: &s.EIPs, Certificates: &s.Certificates,
		ACLs: &s.ACLs, Extensions: &s.Extensions,
		NLBs: &s.NLBs, NLBListeners: &s.NLBListeners, NLBGroups: &s.NLBGroups, NLBJobs: &s.NLBJobs, SecurityGroups: &s.SecurityGroups,
	}
}

// Snapshot returns every resource as JSON.
func (s *Store) Snapshot() (data []byte, err error) {
	s.View(func() { data, err = json.Marshal(s.fields()) })
	if err != nil {
		return nil, fmt.Errorf("save snapshot: %w", err)
	}
	return data, nil
}

// Save writes every resource to a file. The file is replaced as a whole, so that a crash leaves the old one.
func (s *Store) Save(path string) error {
	data, err := s.Snapshot()
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("save snapshot: %w", err)
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("save snapshot %s: %w", path, err), os.Remove(f.Name()))
	}
	return nil
}

// Load restores the snapshot in a file, and reports whether there was one.
func (s *Store) Load(path string) (bool, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("restore snapshot: %w", err)
	}
	if err := s.Restore(data); err != nil {
		return false, fmt.Errorf("%s: %w", path, err)
	}
	return true, nil
}

// Restore replaces every resource by those of a snapshot. One that cannot be read changes nothing. Calls that are under way may fail.
func (s *Store) Restore(data []byte) error {
	var saved snapshot
	if err := json.Unmarshal(data, &saved); err != nil {
		return fmt.Errorf("restore snapshot: %w", err)
	}
	if saved.Version != snapshotVersion {
		return fmt.Errorf("restore snapshot: version %d, accepted: %d", saved.Version, snapshotVersion)
	}
	s.Update(func() {
		s.replace(&saved)
		s.seq, s.publicIPs, s.Tokens = saved.Seq, saved.PublicIPs, Tokens{}
		s.relink()
		if s.Settle > 0 {
			s.announce(s.Settle)
		}
	})
	return nil
}

// replace takes the tables of a snapshot. One that is not in it is empty.
func (s *Store) replace(saved *snapshot) {
	into := s.fields()
	adopt(into.VPCs, saved.VPCs)
	adopt(into.VSwitches, saved.VSwitches)
	adopt(into.RouteTables, saved.RouteTables)
	adopt(into.Instances, saved.Instances)
	adopt(into.Interfaces, saved.Interfaces)
	adopt(into.LoadBalancers, saved.LoadBalancers)
	adopt(into.ServerGroups, saved.ServerGroups)
	adopt(into.EIPs, saved.EIPs)
	adopt(into.Certificates, saved.Certificates)
	adopt(into.ACLs, saved.ACLs)
	adopt(into.Extensions, saved.Extensions)
	adopt(into.NLBs, saved.NLBs)
	adopt(into.NLBListeners, saved.NLBListeners)
	adopt(into.NLBGroups, saved.NLBGroups)
	adopt(into.NLBJobs, saved.NLBJobs)
	adopt(into.SecurityGroups, saved.SecurityGroups)
}

func adopt[T Resource](into, from *Table[T]) {
	*into = Table[T]{}
	if from != nil {
		*into = *from
	}
}

// relink rebuilds what follows from the resources: indexes, taken addresses and references.
func (s *Store) relink() {
	clear(s.byIP)
	clear(s.attached)
	for v := range s.VSwitches.All() {
		v.cursor, v.taken, v.takenIPv6 = v.Prefix.Addr(), nil, 0
	}
	for eni := range s.Interfaces.All() {
		s.indexInterface(eni)
		for _, ip := range eni.PrivateIPs {
			s.retake(eni.VSwitchID, ip)
		}
		if i, ok := s.Instances.Get(eni.InstanceID); ok && eni.Type == "Primary" {
			i.PrimaryInterface = eni
		}
	}
	for lb := range s.LoadBalancers.All() {
		s.retake(lb.VSwitchID, lb.Address)
	}
	for lb := range s.NLBs.All() {
		for _, z := range lb.Zones {
			s.retake(z.VSwitchID, z.PrivateIP)
			s.retake(z.VSwitchID, z.IPv6)
		}
	}
	for g := range s.ServerGroups.All() {
		s.attach(g.LoadBalancerID, g.Backends, 1)
	}
	for t := range s.RouteTables.All() {
		t.byCIDR = nil
		for _, e := range t.Entries.order {
			t.index(e)
		}
	}
	s.reapLocked(s.Now())
}

func (s *Store) retake(vSwitchID, ip string) {
	v, ok := s.VSwitches.Get(vSwitchID)
	addr, err := netip.ParseAddr(ip)
	if ok && err == nil {
		v.take(addr)
	}
}

// MarshalJSON writes the resources in order.
func (t *Table[T]) MarshalJSON() ([]byte, error) { return json.Marshal(t.order) }

// UnmarshalJSON replaces the resources.
func (t *Table[T]) UnmarshalJSON(data []byte) error {
	var all []T
	if err := json.Unmarshal(data, &all); err != nil {
		return err
	}
	*t = Table[T]{}
	for _, v := range all {
		t.Add(v)
	}
	return nil
}

// savedPhase is a Phase with names that can be written.
type savedPhase struct {
	Now, Then string
	At        time.Time
}

// MarshalJSON writes the phase.
func (p Phase) MarshalJSON() ([]byte, error) { return json.Marshal(savedPhase{p.now, p.then, p.at}) }

// UnmarshalJSON reads a phase.
func (p *Phase) UnmarshalJSON(data []byte) error {
	var s savedPhase
	if err := json.Unmarshal(data, &s); err != nil {
		return err
	}
	*p = Phase{s.Now, s.Then, s.At}
	return nil
}

// Listeners are the listeners of a load balancer by port and protocol.
type Listeners map[ListenerKey]*Listener

// MarshalJSON writes the listeners as a list: their key cannot be one in JSON.
func (l Listeners) MarshalJSON() ([]byte, error) {
	return json.Marshal((&LoadBalancer{Listeners: l}).SortedListeners())
}

// UnmarshalJSON reads the list.
func (l *Listeners) UnmarshalJSON(data []byte) error {
	var all []*Listener
	if err := json.Unmarshal(data, &all); err != nil {
		return err
	}
	*l = Listeners{}
	for _, v := range all {
		(*l)[v.ListenerKey] = v
	}
	return nil
}
