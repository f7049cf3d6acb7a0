package cloud

import (
	"errors"
	"fmt"
	"net/netip"
	"time"
)

// New builds the store that a configuration describes and reports everything that is wrong with it at once. settle is the
// time that asynchronous states take.
func New(c *Config, settle time.Duration) (*Store, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	s := &Store{
		Region: c.Region, AccountID: OrDefault(c.AccountID, "1234567890123456"), Settle: settle, Limits: c.limits(),
		Switches: c.Switches, Roles: roleNames(c.Roles),
		inUse: map[string]int{}, byIP: map[string]*Interface{}, attached: map[string]map[string]int{},
		change: make(chan struct{}), timers: map[*time.Timer]time.Time{},
	}
	s.buildACLs(c)
	s.BandwidthPackages, s.SecurityPolicies = c.BandwidthPackages, c.SecurityPolicies
	certificates := s.buildCertificates(c)
	if err := errors.Join(certificates, s.buildVPCs(c), s.buildTables(c), s.buildVSwitches(c)); err != nil {
		return nil, err
	}
	return s, s.buildInstances(c)
}

func roleNames(roles []RoleConfig) []string {
	var names []string
	for _, role := range roles {
		names = append(names, role.Name)
	}
	return names
}

// certificateLife is how long a configured certificate without PEM texts is good for.
const certificateLife = 365 * 24 * time.Hour

func (s *Store) buildCertificates(c *Config) error {
	var errs []error
	for i, v := range c.Certificates {
		cert := &Certificate{
			Object: s.objectWithID(v.ID), Name: OrDefault(v.Name, v.ID), CA: v.CA, CommonName: v.CommonName,
			Expires: v.Expires,
		}
		if cert.Expires.IsZero() {
			cert.Expires = s.Now().Add(certificateLife)
		}
		if v.Certificate != "" {
			if err := cert.ReadPEM(v.Certificate, v.PrivateKey); err != nil {
				errs = append(errs, fmt.Errorf("certificates[%d]: %w", i, err))
			}
		}
		s.Certificates.Add(cert)
	}
	return errors.Join(errs...)
}

func (s *Store) buildACLs(c *Config) {
	for _, v := range c.ACLs {
		a := &ACL{Object: s.objectWithID(v.ID), Name: OrDefault(v.Name, v.ID), IPVersion: OrDefault(v.IPVersion, "ipv4")}
		for _, cidr := range v.Entries {
			a.Entries = append(a.Entries, ACLEntry{CIDR: netip.MustParsePrefix(cidr).String()})
		}
		s.ACLs.Add(a)
	}
}

func (s *Store) buildVPCs(c *Config) error {
	var errs []error
	for i, v := range c.VPCs {
		ipv6, err := ipv6Range(v.IPv6CIDR, 56)
		if err != nil {
			errs = append(errs, fmt.Errorf("vpcs[%d]: %w", i, err))
			continue
		}
		s.VPCs.Add(&VPC{Object: s.objectWithID(v.ID), Name: OrDefault(v.Name, v.ID), CIDR: v.CIDR, IPv6: ipv6, RouterID: "vrt-" + v.ID})
	}
	return errors.Join(errs...)
}

// ipv6Range reads the IPv6 range of a VPC or vSwitch, which has the one size that the cloud gives out; "" is none.
func ipv6Range(text string, bits int) (netip.Prefix, error) {
	if text == "" {
		return netip.Prefix{}, nil
	}
	prefix, err := netip.ParsePrefix(text)
	if err != nil {
		return netip.Prefix{}, err
	}
	if !prefix.Addr().Is6() || prefix.Bits() != bits {
		return netip.Prefix{}, fmt.Errorf("ipv6Cidr %s: an IPv6 range of %d bits is accepted", text, bits)
	}
	return prefix.Masked(), nil
}

func (s *Store) buildTables(c *Config) error {
	var errs []error
	for i, t := range c.RouteTables {
		vpc, ok := s.VPCs.Get(t.VPCID)
		if !ok { // what is wrong with the VPC is reported there
			continue
		}
		kind := "System"
		if len(s.TablesOf(vpc.ID)) > 0 {
			kind = "Custom"
		}
		table := &RouteTable{
			Object: s.objectWithID(t.ID), Name: t.Name, VPCID: vpc.ID, RouterID: vpc.RouterID, Type: kind,
			AssociateType: "VSwitch", Phase: Steady(Available),
		}
		s.AddBuiltIn(table, vpc)
		if err := s.addLearned(table, t.LearnedRoutes); err != nil {
			errs = append(errs, fmt.Errorf("routeTables[%d]: %w", i, err))
		}
		s.RouteTables.Add(table)
	}
	for vpc := range s.VPCs.All() {
		if len(s.TablesOf(vpc.ID)) == 0 {
			errs = append(errs, fmt.Errorf("routeTables: VPC %s has none, accepted: at least one, which is its system table", vpc.ID))
		}
	}
	return errors.Join(errs...)
}

func (s *Store) buildVSwitches(c *Config) error {
	var errs []error
	for i, v := range c.VSwitches {
		if err := s.buildVSwitch(v); err != nil {
			errs = append(errs, fmt.Errorf("vSwitches[%d]: %w", i, err))
		}
	}
	return errors.Join(errs...)
}

func (s *Store) buildVSwitch(v VSwitchConfig) error {
	prefix := netip.MustParsePrefix(v.CIDR)
	ipv6, err := s.ipv6OfVSwitch(v)
	if err != nil {
		return err
	}
	tables := s.TablesOf(v.VPCID)
	if len(tables) == 0 { // what is wrong with the VPC is reported there
		return nil
	}
	for _, o := range s.VSwitchesOf(v.VPCID) {
		if o.Prefix.Overlaps(prefix) {
			return fmt.Errorf("%s of %s overlaps with %s of %s", v.CIDR, v.ID, o.Prefix, o.ID)
		}
	}
	vsw := &VSwitch{
		Object: s.objectWithID(v.ID), Name: OrDefault(v.Name, v.ID), VPCID: v.VPCID, ZoneID: v.Zone, Prefix: prefix, IPv6: ipv6,
		RouteTableID: OrDefault(v.RouteTableID, tables[0].ID), cursor: prefix.Addr(),
	}
	s.VSwitches.Add(vsw)
	for _, t := range tables {
		s.addLocal(t, vsw)
	}
	return nil
}

func (s *Store) ipv6OfVSwitch(v VSwitchConfig) (netip.Prefix, error) {
	prefix, err := ipv6Range(v.IPv6CIDR, 64)
	if err != nil || !prefix.IsValid() {
		return prefix, err
	}
	if vpc, ok := s.VPCs.Get(v.VPCID); !ok || !vpc.IPv6.IsValid() || !vpc.IPv6.Contains(prefix.Addr()) {
		return prefix, fmt.Errorf("ipv6Cidr %s: lies in no IPv6 range of vpc %q", v.IPv6CIDR, v.VPCID)
	}
	return prefix, nil
}

func (s *Store) buildInstances(c *Config) error {
	var errs []error
	for i, v := range c.Instances {
		_, err := s.AddInstance(v.ID, InstanceSpec{
			Name: v.Name, Type: v.Type, VSwitchID: v.VSwitchID, PrivateIP: v.PrivateIP, RAMRole: v.RAMRole,
			HTTPTokens: v.HTTPTokens, HTTPEndpoint: v.HTTPEndpoint, SourceDestCheck: v.SourceDestCheck, IPv6s: v.IPv6s, Tags: v.Tags,
		}, Steady(OrDefault(v.Status, Running)))
		if err != nil {
			errs = append(errs, fmt.Errorf("instances[%d]: %w", i, err))
		}
	}
	return errors.Join(errs...)
}

// OrDefault returns v, or def when v is empty.
func OrDefault(v, def string) string {
	if v == "" {
		return def
	}
	return v
}
