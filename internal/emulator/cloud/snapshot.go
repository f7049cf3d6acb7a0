package cloud

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// snapshot is the form in which resources are saved. Client tokens, temporary keys and what calls hold are not: they
// belong to callers that are gone.
type snapshot struct {
	Version int
	// Region is where the resources are, Time the time of the cloud.
	Region        string
	Time          time.Time
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
		Version: snapshotVersion, Region: s.Region, Time: s.Now(), Seq: s.seq, PublicIPs: s.publicIPs,
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

// CanSave reports a file that [Store.Save] could not write.
func CanSave(path string) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err == nil {
		err = errors.Join(f.Close(), os.Remove(f.Name()))
	}
	if err != nil {
		return fmt.Errorf("save snapshot %s: %w", path, err)
	}
	return nil
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

// MarshalJSON writes the resources in order.
func (t *Table[T]) MarshalJSON() ([]byte, error) { return json.Marshal(t.order) }

// UnmarshalJSON replaces the resources.
func (t *Table[T]) UnmarshalJSON(data []byte) error {
	var all []T
	if err := json.Unmarshal(data, &all); err != nil {
		return err
	}
	*t = Table[T]{}
	for n, v := range all {
		var none T
		if v == none {
			return fmt.Errorf("entry %d of %T is null", n, all)
		}
		id, _ := v.Key()
		if _, twice := t.Get(id); twice || id == "" {
			return fmt.Errorf("entry %d of %T has the ID %q, which is empty or used twice", n, all, id)
		}
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
	for n, v := range all {
		if v == nil {
			return fmt.Errorf("listener %d is null", n)
		}
		if protocols := []string{"tcp", "udp", "http", "https"}; !slices.Contains(protocols, v.Protocol) {
			return fmt.Errorf("listener %d: protocol %q, accepted: %s", n, v.Protocol, strings.Join(protocols, ", "))
		}
		(*l)[v.ListenerKey] = v
	}
	return nil
}
