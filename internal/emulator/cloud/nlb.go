package cloud

import (
	"slices"
	"time"
)

// NLB is a Network Load Balancer instance.
type NLB struct {
	Object
	Tagged
	Name, DNSName, VPCID, ResourceGroupID         string
	AddressType, IPv6AddressType, AddressVersion  string
	Zones                                         []NLBZone
	LeftZones                                     []NLBLeftZone
	SecurityGroups                                []string
	BandwidthPackageID                            string
	CrossZone                                     bool
	Cps                                           int
	DeletionProtection                            bool
	DeletionProtectionReason                      string
	ModificationProtection, ModificationProtected string
	// Locks are the reasons for which the instance is locked, for example FinancialLocked; none for a usable one.
	Locks []string
	Phase Phase
}

// NLBZone is where an NLB answers in one zone.
type NLBZone struct {
	ZoneID, VSwitchID             string
	PrivateIP, IPv6               string
	AllocationID, PublicIP, EniID string
	Status                        string
	IsEIPOfUser                   bool
}

// NLBLeftZone is a zone that an NLB has left, with the time until which clients may still have its addresses.
type NLBLeftZone struct {
	NLBZone
	Until time.Time
}

// NLBNameLife is how long clients use the answer of a name server.
const NLBNameLife = time.Minute

// Statuses of the objects of NLB that other products do not share.
const (
	NLBProvisioning = "Provisioning"
	NLBActive       = "Active"
	NLBConfiguring  = "Configuring"
	NLBInactive     = "Inactive"
	NLBCreateFailed = "CreateFailed"
	NLBCreating     = "Creating"
	NLBAdding       = "Adding"
	NLBRemoving     = "Removing"
	NLBStopping     = "Stopping"

	JobProcessing = "Processing"
	JobSucceeded  = "Succeeded"
	JobFailed     = "Failed"
)

// NLBListener is a listener of an NLB, on one port or on a range of ports.
type NLBListener struct {
	Object
	Tagged
	LoadBalancerID string
	// Port is 0 for a listener on the range from Start to End.
	Port, Start, End       int
	Protocol, Description  string
	GroupID                string
	IdleTimeout, Cps, Mss  int
	Certificates, CAs      []string
	AdditionalCertificates []string
	CAEnabled              bool
	SecurityPolicy         string
	ALPNEnabled            bool
	ALPNPolicy             string
	ProxyProtocol          bool
	ProxyProtocolV2        string
	SecSensor              bool
	Phase                  Phase
}

// Ports returns the first and the last port.
func (l *NLBListener) Ports() (first, last int) {
	if l.Port != 0 {
		return l.Port, l.Port
	}
	return l.Start, l.End
}

// Transport is what a listener occupies its ports of: TLS is carried by TCP.
func (l *NLBListener) Transport() string {
	if l.Protocol == "UDP" {
		return "UDP"
	}
	return "TCP"
}

// NLBGroup is a server group of NLB. It belongs to the account, not to an instance.
type NLBGroup struct {
	Object
	Tagged
	Name, VPCID, Type, Protocol string
	AddressVersion, Affinity    string
	ResourceGroupID, Scheduler  string
	AnyPort, PreserveClientIP   bool
	ConnectionDrain             bool
	ConnectionDrainTimeout      int
	HealthCheck                 NLBHealthCheck
	Servers                     []*NLBServer
	Phase                       Phase
}

// NLBHealthCheck is how a group checks its servers.
type NLBHealthCheck struct {
	Enabled                      bool
	Type, Domain, URL, Method    string
	Version, Request, Expect     string
	Codes                        []string
	ConnectPort, ConnectTimeout  int
	Interval, Healthy, Unhealthy int
}

// NLBServer is a backend server of a group. Its identity is type, id, address and port.
type NLBServer struct {
	ID, IP, Type, ZoneID, Description string
	Port, Weight                      int
	Phase                             Phase
}

// Same reports whether two entries name the same backend server.
func (s *NLBServer) Same(o *NLBServer) bool {
	return s.Type == o.Type && s.ID == o.ID && s.IP == o.IP && s.Port == o.Port
}

// NLBJob is the asynchronous part of a call. Its status becomes final by itself.
type NLBJob struct {
	Object
	Phase Phase
}

// How many times the settle time the creation and the deletion of an NLB take: 20 and 10 seconds with a settle time of one second,
// which is what a job takes.
const (
	nlbCreationFactor = 20
	nlbDeletionFactor = 10
)

// NLBJobLife is how long a job can be asked for. The cloud publishes no figure.
const NLBJobLife = time.Hour

// nlbJobsKept is how long jobs are kept, for clouds that remember them for longer.
const nlbJobsKept = 24 * NLBJobLife

// NLBCreation is how long a new NLB is provisioned, NLBDeletion how long a deleted one is Deleting.
func (s *Store) NLBCreation() time.Duration { return nlbCreationFactor * s.Settle }

// NLBDeletion is how long a deleted NLB is Deleting.
func (s *Store) NLBDeletion() time.Duration { return nlbDeletionFactor * s.Settle }

// BeginFor enters the status now and then, after d, the other.
func (s *Store) BeginFor(now, then string, t time.Time, d time.Duration) Phase {
	if d <= 0 {
		return Steady(then)
	}
	s.announce(d)
	return Phase{now: now, then: then, at: t.Add(d)}
}

// LiveServers returns the servers of a group that are not gone at a moment.
func (g *NLBGroup) LiveServers(now time.Time) []*NLBServer {
	live := make([]*NLBServer, 0, len(g.Servers))
	for _, s := range g.Servers {
		if s.Phase.At(now) != gone {
			live = append(live, s)
		}
	}
	return live
}

// NLBListenersOf returns the listeners of an NLB that are not gone, in the order of creation.
func (s *Store) NLBListenersOf(id string, now time.Time) []*NLBListener {
	return s.NLBListeners.Select(func(l *NLBListener) bool { return l.LoadBalancerID == id && l.Phase.At(now) != gone })
}

// NLBListenersTo returns the listeners that send to a group.
func (s *Store) NLBListenersTo(groupID string, now time.Time) []*NLBListener {
	return s.NLBListeners.Select(func(l *NLBListener) bool { return l.GroupID == groupID && l.Phase.At(now) != gone })
}

// NLBServersOf counts the backend servers of all groups behind an NLB, which share one quota.
func (s *Store) NLBServersOf(id string, now time.Time) int {
	return s.countServers(id, now, func(*NLBServer) bool { return true })
}

// NLBServersLeaving counts those of them that are being removed.
func (s *Store) NLBServersLeaving(id string, now time.Time) int {
	return s.countServers(id, now, func(v *NLBServer) bool { return v.Phase.At(now) == NLBRemoving })
}

func (s *Store) countServers(id string, now time.Time, counts func(*NLBServer) bool) int {
	seen, n := map[string]bool{}, 0
	for _, l := range s.NLBListenersOf(id, now) {
		g, ok := s.NLBGroups.Get(l.GroupID)
		if !ok || seen[g.ID] {
			continue
		}
		seen[g.ID] = true
		for _, v := range g.LiveServers(now) {
			if counts(v) {
				n++
			}
		}
	}
	return n
}

// ReleaseZone gives the addresses of an instance in one zone back to the vSwitch.
func (s *Store) ReleaseZone(z NLBZone) {
	s.ReleaseAddress(z.VSwitchID, z.PrivateIP)
	s.ReleaseAddress(z.VSwitchID, z.IPv6)
}

// reapNLB drops what has finished its deletion.
func (s *Store) reapNLB(now time.Time) {
	for _, l := range s.NLBListeners.Select(func(l *NLBListener) bool { return l.Phase.At(now) == gone }) {
		s.NLBListeners.Delete(l)
	}
	for _, g := range s.NLBGroups.Select(func(g *NLBGroup) bool { return g.Phase.At(now) == gone }) {
		s.NLBGroups.Delete(g)
	}
	for g := range s.NLBGroups.All() {
		g.Servers = slices.DeleteFunc(g.Servers, func(v *NLBServer) bool { return v.Phase.At(now) == gone })
	}
	for _, lb := range s.NLBs.Select(func(lb *NLB) bool { return lb.Phase.At(now) == gone }) {
		for _, z := range lb.Zones {
			s.ReleaseZone(z)
		}
		s.NLBs.Delete(lb)
	}
	for _, j := range s.NLBJobs.Select(func(j *NLBJob) bool { return now.After(j.Created.Add(nlbJobsKept)) }) {
		s.NLBJobs.Delete(j)
	}
}

// SecurityGroup is a security group of ECS.
type SecurityGroup struct {
	Object
	Tagged
	Name, Description, VPCID, Type string
	ResourceGroupID                string
	Rules                          []SecurityRule
}

// SecurityRule is one ingress rule of a security group.
type SecurityRule struct {
	ID, Policy, Protocol, PortRange string
	SourceCIDR, IPv6SourceCIDR      string
	Priority                        int
	Description                     string
}
