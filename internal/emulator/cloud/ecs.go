package cloud

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"
)

// Statuses of an instance.
const (
	Pending  = "Pending"
	Starting = "Starting"
	Running  = "Running"
	Stopping = "Stopping"
	Stopped  = "Stopped"
)

// Instance is an ECS instance.
type Instance struct {
	Object
	Name, HostName, Type, ImageID string
	ZoneID, VPCID, VSwitchID      string
	PrivateIP                     string
	RAMRole                       string
	ChargeType, SpotStrategy      string
	// HTTPTokens is optional or required (hardened metadata); HTTPEndpoint enabled or disabled.
	HTTPTokens, HTTPEndpoint string
	DeletionProtection       bool
	SecurityGroups           []string
	Tags                     Tags
	Phase                    Phase
	PrimaryInterface         *Interface `json:"-"`
	// SecondaryInterfaces were attached later.
	SecondaryInterfaces []*Interface `json:"-"`
}

// Status returns the state of the instance at a moment.
func (i *Instance) Status(t time.Time) string { return i.Phase.At(t) }

// Interface is an elastic network interface.
type Interface struct {
	Object
	Name, Description, Type string
	InstanceID              string
	ZoneID, VPCID           string
	VSwitchID, MAC          string
	// PrimaryIP also stands first in PrivateIPs.
	PrimaryIP  string
	PrivateIPs []string
	// IPv6s are in the form that the standard library prints.
	IPv6s []string
	// SourceDestCheck on means that the instance cannot forward for others: routes to it carry nothing.
	SourceDestCheck bool
	SecurityGroups  []string
	Tags            Tags
}

// InstanceSpec describes an instance to put into the account. Empty fields get defaults.
type InstanceSpec struct {
	Name, HostName, Type, ZoneID, VSwitchID, PrivateIP, RAMRole, Status string
	HTTPTokens, HTTPEndpoint                                            string
	ImageID, ChargeType, SpotStrategy                                   string
	SecurityGroups                                                      []string
	// IPv6s are addresses of the primary interface, in the IPv6 range of the vSwitch.
	IPv6s []string
	// SourceDestCheck of the primary interface; off by default, as with RunInstances.
	SourceDestCheck bool
	Tags            map[string]string
}

// defaultInstanceType is the type of instances that name none.
const defaultInstanceType = "ecs.g7.large"

// AddInstance creates an instance with its primary interface. An empty id gets a fresh one. The caller holds the lock.
func (s *Store) AddInstance(id string, spec InstanceSpec, phase Phase) (*Instance, error) {
	if err := s.CheckRole(spec.RAMRole); err != nil {
		return nil, err
	}
	vsw, err := s.placeOf(spec)
	if err != nil {
		return nil, err
	}
	object := s.NewObject("i")
	if id != "" {
		object.ID = id
	}
	ipv6s, err := s.ipv6Addresses(vsw, spec.IPv6s)
	if err != nil {
		return nil, fmt.Errorf("place instance %s: %w", object.ID, err)
	}
	ip, err := s.TakeAddress(vsw, spec.PrivateIP)
	if err != nil {
		return nil, fmt.Errorf("place instance %s: %w", object.ID, err)
	}
	i := &Instance{
		Object: object, Name: spec.Name, HostName: spec.HostName, Type: spec.Type, ImageID: spec.ImageID,
		ZoneID: vsw.ZoneID, VPCID: vsw.VPCID, VSwitchID: vsw.ID, PrivateIP: ip, RAMRole: spec.RAMRole,
		ChargeType: spec.ChargeType, SpotStrategy: spec.SpotStrategy,
		HTTPTokens: spec.HTTPTokens, HTTPEndpoint: spec.HTTPEndpoint,
		SecurityGroups: spec.SecurityGroups, Tags: TagsOf(spec.Tags), Phase: phase,
	}
	i.fillDefaults()
	s.Instances.Add(i)
	s.addPrimaryInterface(i, ipv6s, spec.SourceDestCheck)
	return i, nil
}

// ErrNoRole means that the account has no RAM role of a name.
var ErrNoRole = errors.New("no such RAM role")

// CheckRole reports a role that an instance cannot have because the account does not have it; "" is no role.
func (s *Store) CheckRole(name string) error {
	if name == "" || slices.Contains(s.Roles, name) {
		return nil
	}
	return fmt.Errorf("role %s: %w", name, ErrNoRole)
}

// ipv6Addresses returns the addresses in one spelling, or an error for one that is none of the vSwitch or is in use.
func (s *Store) ipv6Addresses(vsw *VSwitch, texts []string) ([]string, error) {
	addresses := make([]string, 0, len(texts))
	for _, text := range texts {
		address, err := netip.ParseAddr(text)
		if err != nil || !vsw.IPv6.IsValid() || !vsw.IPv6.Contains(address) {
			return nil, fmt.Errorf("%q is no address of the IPv6 range of %s", text, vsw.ID)
		}
		if _, taken := s.InterfaceByIP(vsw.VPCID, address.String()); taken {
			return nil, fmt.Errorf("the address %s is in use", address)
		}
		addresses = append(addresses, address.String())
	}
	return addresses, nil
}

func (i *Instance) fillDefaults() {
	setDefault(&i.Name, i.ID)
	setDefault(&i.HostName, i.Name)
	setDefault(&i.Type, defaultInstanceType)
	setDefault(&i.ImageID, "aliyun_3_x64_20G_alibase_20240528.vhd")
	setDefault(&i.ChargeType, "PostPaid")
	setDefault(&i.SpotStrategy, "NoSpot")
	setDefault(&i.HTTPTokens, "optional")
	setDefault(&i.HTTPEndpoint, "enabled")
	if len(i.SecurityGroups) == 0 {
		i.SecurityGroups = []string{"sg-emulator"}
	}
}

func setDefault(field *string, value string) {
	if *field == "" {
		*field = value
	}
}

// placeOf finds the vSwitch of a new instance: the named one, else the first of the named zone, else the first.
func (s *Store) placeOf(spec InstanceSpec) (*VSwitch, error) {
	if spec.VSwitchID != "" {
		vsw, ok := s.VSwitches.Get(spec.VSwitchID)
		if !ok {
			return nil, fmt.Errorf("vSwitch %s does not exist", spec.VSwitchID)
		}
		if spec.ZoneID != "" && spec.ZoneID != vsw.ZoneID {
			return nil, fmt.Errorf("vSwitch %s is in zone %s, not in %s", vsw.ID, vsw.ZoneID, spec.ZoneID)
		}
		return vsw, nil
	}
	for vsw := range s.VSwitches.All() {
		holds := spec.PrivateIP == "" || vsw.Contains(spec.PrivateIP)
		if holds && (spec.ZoneID == "" || spec.ZoneID == vsw.ZoneID) {
			return vsw, nil
		}
	}
	return nil, fmt.Errorf("no vSwitch in zone %q for the address %q", spec.ZoneID, spec.PrivateIP)
}

func (s *Store) addPrimaryInterface(i *Instance, ipv6s []string, sourceDestCheck bool) {
	object := s.NewObject("eni")
	eni := &Interface{
		Object: object, Type: "Primary", InstanceID: i.ID, ZoneID: i.ZoneID, VPCID: i.VPCID, VSwitchID: i.VSwitchID,
		MAC: mac(object.Seq), PrimaryIP: i.PrivateIP, PrivateIPs: []string{i.PrivateIP}, IPv6s: ipv6s,
		SecurityGroups: i.SecurityGroups, SourceDestCheck: sourceDestCheck,
	}
	i.PrimaryInterface = eni
	s.addInterface(eni)
}

func (s *Store) addInterface(eni *Interface) {
	s.Interfaces.Add(eni)
	s.indexInterface(eni)
}

func (s *Store) indexInterface(eni *Interface) {
	for _, ip := range slices.Concat(eni.PrivateIPs, eni.IPv6s) {
		s.byIP[eni.VPCID+"/"+ip] = eni
	}
	if i, ok := s.Instances.Get(eni.InstanceID); ok && eni.Type == "Secondary" {
		i.SecondaryInterfaces = append(i.SecondaryInterfaces, eni)
	}
}

// mac makes a locally administered address out of a sequence number.
func mac(n int64) string {
	return fmt.Sprintf("02:16:3e:%02x:%02x:%02x", byte(n>>16), byte(n>>8), byte(n))
}

// InterfaceByIP finds the interface that has a private IPv4 address or an IPv6 address in a VPC.
func (s *Store) InterfaceByIP(vpcID, ip string) (*Interface, bool) {
	eni, ok := s.byIP[vpcID+"/"+ip]
	return eni, ok
}

// InterfacesOf returns the interfaces of an instance, the primary one first.
func (s *Store) InterfacesOf(instanceID string) []*Interface {
	return s.Interfaces.Select(func(e *Interface) bool { return e.InstanceID == instanceID })
}

// RemoveInstance releases an instance with its interfaces and addresses. Backends and routes that name it stay (assumed:
// no source says what the cloud does), so that a controller has to take them out. The caller holds the lock.
func (s *Store) RemoveInstance(i *Instance) {
	for _, eni := range s.InterfacesOf(i.ID) {
		s.removeInterface(eni)
	}
	s.Instances.Delete(i)
}

func (s *Store) removeInterface(eni *Interface) {
	s.Interfaces.Delete(eni)
	for _, ip := range eni.IPv6s {
		delete(s.byIP, eni.VPCID+"/"+ip)
	}
	for _, ip := range eni.PrivateIPs {
		delete(s.byIP, eni.VPCID+"/"+ip)
		s.ReleaseAddress(eni.VSwitchID, ip)
	}
}
