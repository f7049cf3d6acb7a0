package model

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
)

// Values of the API that say what a CLB is charged by.
// Source: https://www.alibabacloud.com/help/en/slb/classic-load-balancer/developer-reference/api-slb-2014-05-15-createloadbalancer.
const (
	PayBySpec      = "PayBySpec"
	PayByCLCU      = "PayByCLCU"
	PayByBandwidth = "paybybandwidth"
)

// Model is what one Service has, or is to have, in the cloud. An empty field of a desired model is not managed: it is
// neither compared nor written.
type Model struct {
	// LoadBalancer holds the managed attributes; in an observed model all of them.
	LoadBalancer alicloud.LoadBalancer
	// Create holds the attributes that a new CLB gets. They are not compared afterwards: what no annotation manages, its
	// user may change. Desired models only.
	Create alicloud.LoadBalancer
	// VSwitchIDs are tried in this order at creation until one has a free address. Desired models only.
	VSwitchIDs []string
	// RemoveTags are the keys of tags that were written for an annotation and left it, RemoveDomains the domains whose
	// extensions were created for one and left it, in lower case. Desired models only.
	RemoveTags, RemoveDomains []string
	// Reused says that the CLB is an existing one (annotation id): it is neither created nor deleted.
	Reused bool
	// Override says that the listeners of a reused CLB are ours to manage.
	Override bool
	// CreateBlocked says that an annotation that is not accepted decides on what a new CLB is like: none is created. Desired models
	// only.
	CreateBlocked bool
	// KeepAccess says that nobody knows who may connect: the access control of the listeners and our access control list stay as
	// they are. Desired models only.
	KeepAccess bool

	// Conflicts are the ports of the Service that somebody else has on the CLB of its group, or that the CLB has no room for. Desired models
	// only.
	Conflicts []alicloud.ListenerKey

	// InUse are the ids of vServer groups and of the access control list that the cloud does not delete because something uses them that is
	// not the Service's and that may not show, such as a rule of a listener. Desired models only.
	InUse sets.Set[string] `json:"-"`
	// Ports are those of the Service, whether they can be served or not. Desired models only.
	Ports sets.Set[int] `json:"-"`

	// Exact says that small differences of shares count, too, see [Group.Counted]. Desired models only.
	Exact bool

	Listeners []Listener
	Groups    []Group
	// Former are groups that listeners use and are to leave, with their ids, as they have to be while a listener stays in them. Desired
	// models only.
	Former []Group

	// Access is the access control list of the Service's source ranges, nil for none.
	Access *alicloud.AccessList
}

// Listener is one listener.
type Listener struct {
	alicloud.ListenerKey
	Description string
	// Group is the name of the vServer group, empty for a listener that redirects. Desired models only.
	Group string
	// ServicePort is the protocol of the Service's port. Desired models only.
	ServicePort corev1.Protocol
	// GroupID is the id of the vServer group. Observed models only.
	GroupID string
	// Status is one of alicloud's listener states. Observed models only.
	Status string
	// Attributes are the managed ones; in an observed model all of them.
	Attributes alicloud.Attributes
	// Extensions are the domain extensions of an HTTPS listener; in an observed model all of them, if they were asked for.
	Extensions []alicloud.DomainExtension
	// Blocked says that what the port needs is missing: the listener and the groups of the CLB stay as they are. Desired
	// models only.
	Blocked bool
	// UpdateOnly says that an annotation that is not accepted decides on the listener: it is neither created nor replaced by one of
	// another kind. Desired models only.
	UpdateOnly bool
	// Create holds attributes that a new listener gets beside the managed ones. Desired models only.
	Create alicloud.Attributes
}

// Group is one vServer group with its backend servers.
type Group struct {
	// ID is empty in desired models, but for [Model.Former], and for a CLB that the Service leaves.
	ID string
	// Name is the mark of a group of ours. A group that somebody else made on a reused CLB has its id here: names of others
	// may repeat.
	Name     string
	Backends []alicloud.Backend

	// Doubt, in a desired model, keeps backend servers from being removed because the set may be incomplete; those
	// whose ServerID is in Gone are known not to belong and are removed all the same.
	Doubt bool
	Gone  sets.Set[string]
	// Held, in a desired model, are addresses of backend servers that stay in the group when they are in it.
	Held sets.Set[string]
	// Draining are backend servers that get weight 0 when they are in the group and are not added when they are not.
	Draining []alicloud.Backend
	// Counted says that the weights are numbers of endpoints: they are written only where shares of the traffic differ enough.
	// Desired models only.
	Counted bool
	// Dead are the instances in a group that is to have fewer backend servers that count as taking no traffic. Desired models only.
	Dead sets.Set[string]
	// Balances says that the only backend server that leaves still works. Desired models only.
	Balances bool
	// KeepWeights leaves the weights of backend servers that are in the group as they are.
	KeepWeights bool
}

// Listener returns the listener, nil for none.
func (m *Model) Listener(key alicloud.ListenerKey) *Listener {
	for i := range m.Listeners {
		if m.Listeners[i].ListenerKey == key {
			return &m.Listeners[i]
		}
	}
	return nil
}

// HTTPSPorts returns the ports of the https listeners.
func (m *Model) HTTPSPorts() sets.Set[int] {
	ports := sets.New[int]()
	for i := range m.Listeners {
		if m.Listeners[i].Protocol == alicloud.ProtocolHTTPS {
			ports.Insert(m.Listeners[i].Port)
		}
	}
	return ports
}

// Certificates returns the ids of the server certificates of the listeners and their domain extensions.
func (m *Model) Certificates() sets.Set[string] {
	used := sets.New[string]()
	for i := range m.Listeners {
		used.Insert(m.Listeners[i].Attributes[alicloud.AttributeServerCertificateID])
		for _, extension := range m.Listeners[i].Extensions {
			used.Insert(extension.CertificateID)
		}
	}
	return used
}

// Group returns the observed group of that name. Of several (a creation whose answer was lost and that was repeated) it
// is the one that a listener uses.
func (m *Model) Group(name string) *Group {
	var found *Group
	for i := range m.Groups {
		if m.Groups[i].Name != name {
			continue
		}
		if found == nil || m.isUsed(m.Groups[i].ID) && !m.isUsed(found.ID) {
			found = &m.Groups[i]
		}
	}
	return found
}

// ForeignGroups returns the ids of the groups that no controller made.
func (m *Model) ForeignGroups() sets.Set[string] {
	ids := sets.New[string]()
	for i := range m.Groups {
		if m.Groups[i].Foreign() {
			ids.Insert(m.Groups[i].ID)
		}
	}
	return ids
}

// Foreign reports whether an observed group is somebody else's.
func (g *Group) Foreign() bool { return g.Name == g.ID }

// GroupByID returns the observed group, nil for none.
func (m *Model) GroupByID(id string) *Group {
	for i := range m.Groups {
		if m.Groups[i].ID == id {
			return &m.Groups[i]
		}
	}
	return nil
}

// FormerGroup returns the group that a listener is to leave, as it has to be until then, nil for none.
func (m *Model) FormerGroup(id string) *Group {
	for i := range m.Former {
		if m.Former[i].ID == id {
			return &m.Former[i]
		}
	}
	return nil
}

// isUsed reports whether a listener sends to the group.
func (m *Model) isUsed(groupID string) bool {
	for i := range m.Listeners {
		if m.Listeners[i].GroupID == groupID {
			return true
		}
	}
	return false
}

// Serves reports whether the CLB answers on at least one of the wanted listeners. A listener of another Service on the same port does
// not count.
func (m *Model) Serves(desired *Model) bool {
	if m.LoadBalancer.Address == "" || desired == nil {
		return false
	}
	return slices.ContainsFunc(desired.Listeners, m.answersOn)
}

// ServesAll reports whether the CLB answers on each of the wanted listeners.
func (m *Model) ServesAll(desired *Model) bool {
	return m.Serves(desired) && !slices.ContainsFunc(desired.Listeners, func(want Listener) bool { return !m.answersOn(want) })
}

func (m *Model) answersOn(want Listener) bool {
	have := m.Listener(want.ListenerKey)
	return have != nil && want.Description == have.Description &&
		(have.Status == alicloud.ListenerRunning || have.Status == alicloud.ListenerStarting)
}

// Creatable reports whether a new CLB would have a listener.
func (m *Model) Creatable() bool {
	return !m.CreateBlocked && slices.ContainsFunc(m.Listeners, func(l Listener) bool { return !l.Blocked && !l.UpdateOnly })
}

// IsRegistered reports whether the address of a pod gets traffic in every group that is to have it.
func IsRegistered(address string, desired, actual *Model) bool {
	if desired == nil || actual == nil {
		return false
	}
	wanted, lacks := wantsAddress(address, desired, actual)
	return wanted && !lacks
}

// IsMissing reports whether the address of a pod gets no traffic in a group that is to have it.
func IsMissing(address string, desired, actual *Model) bool {
	_, lacks := wantsAddress(address, desired, actual)
	return lacks
}

// wantsAddress reports whether a group is to have the address of a pod, and whether one of those lacks it.
func wantsAddress(address string, desired, actual *Model) (wanted, lacks bool) {
	for i := range desired.Groups {
		for _, want := range desired.Groups[i].Backends {
			if want.ServerIP == address {
				wanted, lacks = true, lacks || !hasWeight(actual.Group(desired.Groups[i].Name), want.BackendKey)
			}
		}
	}
	return wanted, lacks
}

func hasWeight(group *Group, key alicloud.BackendKey) bool {
	return group != nil && slices.ContainsFunc(group.Backends, func(b alicloud.Backend) bool { return b.BackendKey == key && b.Weight > 0 })
}

// ClusterIDsOn returns the cluster ids that the marks on an existing CLB carry with the name of the Service. Keeping the one
// that is there means that taking over a CLB rewrites none of its listeners. On a CLB that several clusters share there may be
// marks of a Service of the same name in another cluster.
func ClusterIDsOn(actual *Model, service types.NamespacedName) []string {
	var ids []string
	note := func(text string) {
		if marked, id, ok := mark.Parse(text); ok && marked == service && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	for _, listener := range actual.Listeners {
		note(listener.Description)
	}
	for _, group := range actual.Groups {
		note(group.Name)
		last := group.Name
		for i := range group.Backends {
			if text := group.Backends[i].Description; text != last { // most are the same
				note(text)
				last = text
			}
		}
	}
	if id, ok := actual.LoadBalancer.Tag(mark.TagCluster); ok && !slices.Contains(ids, id) {
		ids = append(ids, id)
	}
	return ids
}

// Put notes that backend servers are in the group.
func (g *Group) Put(backends []alicloud.Backend) { g.Backends = append(g.Backends, backends...) }

// Lacks returns those of the backend servers that are not in the group.
func (g *Group) Lacks(backends []alicloud.Backend) []alicloud.Backend {
	present := make(map[alicloud.BackendKey]bool, len(g.Backends))
	for _, b := range g.Backends {
		present[b.BackendKey] = true
	}
	return slices.DeleteFunc(slices.Clone(backends), func(b alicloud.Backend) bool { return present[b.BackendKey] })
}

// Serves reports whether a backend server of the group takes traffic.
func (g *Group) Serves() bool {
	return slices.ContainsFunc(g.Backends, func(b alicloud.Backend) bool { return b.Weight > 0 })
}

// ServesWithout reports whether the group takes no less traffic without some of its backend servers: another one takes traffic, or
// none of them does.
func (g *Group) ServesWithout(some []alicloud.Backend) bool {
	leaving := make(map[alicloud.BackendKey]bool, len(some))
	serving := false
	for _, b := range some {
		leaving[b.BackendKey] = true
		serving = serving || b.Weight > 0
	}
	return !serving || slices.ContainsFunc(g.Backends, func(b alicloud.Backend) bool { return b.Weight > 0 && !leaving[b.BackendKey] })
}

// Drop notes that backend servers are no longer in the group.
func (g *Group) Drop(backends []alicloud.Backend) {
	gone := make(map[alicloud.BackendKey]bool, len(backends))
	for _, b := range backends {
		gone[b.BackendKey] = true
	}
	g.Backends = slices.DeleteFunc(g.Backends, func(b alicloud.Backend) bool { return gone[b.BackendKey] })
}

// Listens reports whether there is a listener of one of the protocols.
func (m *Model) Listens(protocols []string) bool { return m.Protocols().HasAny(protocols...) }

// Protocols are those of the listeners, in lower case.
func (m *Model) Protocols() sets.Set[string] {
	protocols := sets.New[string]()
	for i := range m.Listeners {
		protocols.Insert(m.Listeners[i].Protocol)
	}
	return protocols
}

// CodeLoadBalancerGone is the code of calls on a CLB that does not exist.
// Source: https://www.alibabacloud.com/help/en/slb/classic-load-balancer/developer-reference/api-slb-2014-05-15-errorcodes.
const CodeLoadBalancerGone = "InvalidLoadBalancerId.NotFound"

// ListenerGone reports whether a call failed because the listener does not exist. That the whole CLB does not exist is another answer,
// which must not pass unnoticed.
func ListenerGone(err error) bool {
	return alicloud.IsNotFound(err) && !alicloud.HasCode(err, CodeLoadBalancerGone)
}
