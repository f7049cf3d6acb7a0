package cloud

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"slices"
	"time"
)

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

// Restore replaces every resource by those of a snapshot. One that cannot be read changes nothing. Calls that are under way may fail. If
// the clock of the cloud is behind the snapshot, it is set forward: otherwise resources would be from the future, and what is under way
// would not end.
func (s *Store) Restore(data []byte) error {
	var saved snapshot
	if err := json.Unmarshal(data, &saved); err != nil {
		return fmt.Errorf("restore snapshot: %w", explain(err))
	}
	if err := s.accepts(&saved); err != nil {
		return fmt.Errorf("restore snapshot: %w", err)
	}
	var err error
	s.Update(func() {
		if behind := saved.Time.Sub(s.Now()); behind > 0 {
			if err = s.advanceLocked(behind); err != nil {
				err = fmt.Errorf("restore snapshot: %w", err)
				return
			}
		}
		s.replace(&saved)
		s.seq, s.publicIPs, s.Tokens = saved.Seq, saved.PublicIPs, Tokens{}
		s.relink()
		s.announceAll()
	})
	return err
}

// accepts reports a snapshot that this cloud cannot have.
func (s *Store) accepts(saved *snapshot) error {
	switch {
	case saved.Version != snapshotVersion:
		return fmt.Errorf("version %d, accepted: %d", saved.Version, snapshotVersion)
	case saved.Region != "" && saved.Region != s.Region:
		return fmt.Errorf("region %q, accepted: %q", saved.Region, s.Region)
	}
	return saved.complete()
}

// complete reports what a resource lacks or has that no answer could show.
func (s *snapshot) complete() error {
	primary := map[string]bool{}
	for _, eni := range rows(s.Interfaces) {
		primary[eni.InstanceID] = primary[eni.InstanceID] || eni.Type == "Primary"
	}
	for _, i := range rows(s.Instances) {
		if !primary[i.ID] {
			return fmt.Errorf("instance %s has no primary network interface", i.ID)
		}
	}
	for _, l := range rows(s.NLBListeners) {
		if l.ProxyProtocolV2 != "" && !json.Valid([]byte(l.ProxyProtocolV2)) {
			return fmt.Errorf("listener %s: ProxyProtocolV2 %q is not JSON", l.ID, l.ProxyProtocolV2)
		}
	}
	for _, g := range rows(s.SecurityGroups) {
		if slices.ContainsFunc(g.Rules, func(r SecurityRule) bool { return r.Policy == "" }) {
			return fmt.Errorf("a rule of security group %s has no policy", g.ID)
		}
	}
	for _, g := range rows(s.NLBGroups) {
		if slices.Contains(g.Servers, nil) {
			return fmt.Errorf("a backend server of group %s is null", g.ID)
		}
	}
	return nil
}

// rows are the resources of a table, which may not be in the snapshot.
func rows[T Resource](t *Table[T]) []T {
	if t == nil {
		return nil
	}
	return t.order
}

// announceAll announces the end of every change that is under way.
func (s *Store) announceAll() {
	now, due := s.Now(), map[time.Time]bool{}
	note := func(p Phase) {
		if !p.Settled(now) && !due[p.at] {
			due[p.at] = true
			s.announce(p.at.Sub(now))
		}
	}
	each(&s.Instances, func(i *Instance) { note(i.Phase) })
	each(&s.EIPs, func(e *EIP) { note(e.Phase) })
	each(&s.RouteTables, func(t *RouteTable) {
		note(t.Phase)
		each(&t.Entries, func(e *RouteEntry) { note(e.Phase) })
	})
	each(&s.LoadBalancers, func(lb *LoadBalancer) {
		for _, l := range lb.Listeners {
			note(l.Phase)
		}
	})
	each(&s.NLBs, func(lb *NLB) { note(lb.Phase) })
	each(&s.NLBListeners, func(l *NLBListener) { note(l.Phase) })
	each(&s.NLBGroups, func(g *NLBGroup) {
		note(g.Phase)
		for _, server := range g.Servers {
			note(server.Phase)
		}
	})
	each(&s.NLBJobs, func(j *NLBJob) { note(j.Phase) })
}

func each[T Resource](t *Table[T], f func(T)) {
	for v := range t.All() {
		f(v)
	}
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
