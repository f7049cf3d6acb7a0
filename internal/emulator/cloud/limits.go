package cloud

// Limits are the quotas and sizes that the cloud enforces.
type Limits struct {
	LoadBalancers   int `json:"loadBalancers,omitempty"`
	ListenersPerLB  int `json:"listenersPerLoadBalancer,omitempty"`
	BackendsPerLB   int `json:"backendsPerLoadBalancer,omitempty"`
	BackendsPerCall int `json:"backendsPerCall,omitempty"`
	// GroupsPerLB and BackendsPerGroup are 0 for no quota: no page names one.
	GroupsPerLB          int `json:"serverGroupsPerLoadBalancer,omitempty"`
	BackendsPerGroup     int `json:"backendsPerServerGroup,omitempty"`
	LBsPerInstance       int `json:"loadBalancersPerInstance,omitempty"`
	RouteEntriesPerTable int `json:"routeEntriesPerTable,omitempty"`
	RouteTablesPerVPC    int `json:"routeTablesPerVpc,omitempty"`
	RouteEntriesPerCall  int `json:"routeEntriesPerCall,omitempty"`
	RouteEntryPage       int `json:"routeEntryPage,omitempty"`
	ACLs                 int `json:"acls,omitempty"`
	ACLEntries           int `json:"aclEntries,omitempty"`
	ACLEntriesPerCall    int `json:"aclEntriesPerCall,omitempty"`
	ListenersPerACL      int `json:"listenersPerAcl,omitempty"`
	DomainExtensions     int `json:"domainExtensionsPerListener,omitempty"`
	// NameCharacters bounds what clients call listeners, vServer groups and their backend servers.
	NameCharacters int `json:"nameCharacters,omitempty"`

	NLBs                int `json:"nlbs,omitempty"`
	ListenersPerNLB     int `json:"listenersPerNlb,omitempty"`
	ServersPerNLB       int `json:"serversPerNlb,omitempty"`
	NLBGroups           int `json:"nlbServerGroups,omitempty"`
	ServersPerNLBGroup  int `json:"serversPerNlbServerGroup,omitempty"`
	NLBGroupsPerServer  int `json:"nlbServerGroupsPerServer,omitempty"`
	ListenersPerGroup   int `json:"listenersPerNlbServerGroup,omitempty"`
	NLBServersPerCall   int `json:"nlbServersPerCall,omitempty"`
	SecurityGroupsPerLB int `json:"securityGroupsPerNlb,omitempty"`
	CertificatesPerNLB  int `json:"additionalCertificatesPerNlb,omitempty"`
}

// Published are the limits of the vendor's documents.
func Published() Limits {
	return Limits{
		LoadBalancers: 60, ListenersPerLB: 50, BackendsPerLB: 200, BackendsPerCall: 20, LBsPerInstance: 50,
		RouteEntriesPerTable: 200, RouteTablesPerVPC: 9, RouteEntriesPerCall: 50, RouteEntryPage: 100,
		ACLs: 50, ACLEntries: 300, ACLEntriesPerCall: 50, ListenersPerACL: 50, DomainExtensions: 3, NameCharacters: 80,
		NLBs: 60, ListenersPerNLB: 50, ServersPerNLB: 400, NLBGroups: 3000, ServersPerNLBGroup: 400, NLBGroupsPerServer: 200,
		ListenersPerGroup: 50, NLBServersPerCall: 200, SecurityGroupsPerLB: 4, CertificatesPerNLB: 25,
	}
}

// Observed are the limits that clients in production rely on where they exceed the published ones.
func Observed() Limits {
	l := Published()
	l.BackendsPerCall = 40
	l.RouteEntryPage = 500
	// The official CCM puts the names of Service and Namespace and the cluster id into one name, without checking its length.
	l.NameCharacters = 256
	l.NLBServersPerCall = 40
	return l
}

// replacedBy returns the limits with every non-zero one of o in its place.
func (l Limits) replacedBy(o Limits) Limits {
	pairs := []struct {
		have *int
		want int
	}{
		{&l.LoadBalancers, o.LoadBalancers}, {&l.ListenersPerLB, o.ListenersPerLB}, {&l.BackendsPerLB, o.BackendsPerLB},
		{&l.BackendsPerCall, o.BackendsPerCall}, {&l.LBsPerInstance, o.LBsPerInstance},
		{&l.GroupsPerLB, o.GroupsPerLB}, {&l.BackendsPerGroup, o.BackendsPerGroup},
		{&l.RouteEntriesPerTable, o.RouteEntriesPerTable}, {&l.RouteTablesPerVPC, o.RouteTablesPerVPC},
		{&l.RouteEntriesPerCall, o.RouteEntriesPerCall}, {&l.RouteEntryPage, o.RouteEntryPage},
		{&l.ACLs, o.ACLs}, {&l.ACLEntries, o.ACLEntries}, {&l.ACLEntriesPerCall, o.ACLEntriesPerCall},
		{&l.ListenersPerACL, o.ListenersPerACL}, {&l.DomainExtensions, o.DomainExtensions},
		{&l.NameCharacters, o.NameCharacters},
		{&l.NLBs, o.NLBs}, {&l.ListenersPerNLB, o.ListenersPerNLB}, {&l.ServersPerNLB, o.ServersPerNLB}, {&l.NLBGroups, o.NLBGroups},
		{&l.ServersPerNLBGroup, o.ServersPerNLBGroup}, {&l.NLBGroupsPerServer, o.NLBGroupsPerServer},
		{&l.ListenersPerGroup, o.ListenersPerGroup}, {&l.NLBServersPerCall, o.NLBServersPerCall},
		{&l.SecurityGroupsPerLB, o.SecurityGroupsPerLB}, {&l.CertificatesPerNLB, o.CertificatesPerNLB},
	}
	for _, p := range pairs {
		if p.want != 0 {
			*p.have = p.want
		}
	}
	return l
}
