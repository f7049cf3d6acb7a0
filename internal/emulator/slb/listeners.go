package slb

import (
	"maps"
	"slices"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

func (s service) listenerActions() []api.Action {
	busy := listenerBusy[0]
	one := []api.Param{lbID(), api.Num("ListenerPort", 1, 65535, api.Required),
		api.Str("ListenerProtocol", api.OneOf("tcp", "udp", "http", "https"))}
	actions := []api.Action{
		{Name: "StartLoadBalancerListener", Kind: api.Write, Params: one, Hold: holdListener, Busy: busy, Run: s.startListener},
		{Name: "StopLoadBalancerListener", Kind: api.Write, Params: one, Hold: holdListener, Busy: busy, Run: s.stopListener},
		{Name: "DeleteLoadBalancerListener", Kind: api.Write, Params: one, Hold: holdListener, Busy: busy, Run: s.deleteListener},
		{Name: "DescribeLoadBalancerListeners", Kind: api.Read, Params: describeListenersParams(), Run: s.describeListeners},
	}
	for _, p := range protocols {
		key := []api.Param{lbID(), api.Num("ListenerPort", 1, 65535, api.Required)}
		shared := append(slices.Clone(key), api.Str("VServerGroupId"), api.Str("Description", api.Len(1, s.Limits.NameCharacters)))
		create := slices.Concat(shared, p.params(func(a attribute) string { return a.create }), []api.Param{cloud.TagParams(cloud.MaxTags)})
		set := slices.Concat(shared, p.params(func(a attribute) string { return a.set }), []api.Param{onOff("VServerGroup")})
		actions = append(actions,
			api.Action{Name: "CreateLoadBalancer" + p.title + "Listener", Kind: api.Write, Params: create, Hold: holdListener, Busy: busy,
				Run: s.createListener(p)},
			api.Action{Name: "SetLoadBalancer" + p.title + "ListenerAttribute", Kind: api.Write, Params: set, Hold: holdListener, Busy: busy,
				Run: s.setListener(p)},
			api.Action{Name: "DescribeLoadBalancer" + p.title + "ListenerAttribute", Kind: api.Read, Params: key, Run: s.describeListener(p)},
		)
	}
	return actions
}

func (s service) createListener(p protocol) func(*api.Call) (any, error) {
	return func(c *api.Call) (any, error) {
		lb, err := s.writable(c)
		if err != nil {
			return nil, err
		}
		key := cloud.ListenerKey{Port: c.Int("ListenerPort", 0), Protocol: p.name}
		if bad := s.mayCreate(lb, key, c); bad != nil {
			return nil, bad
		}
		if bad := s.checkTarget(lb, p, c); bad != nil {
			return nil, bad
		}
		l := &cloud.Listener{
			Object: s.NewObject("listener"), ListenerKey: key, Description: c.Str("Description"),
			ServerGroupID: c.Str("VServerGroupId"), Attributes: map[string]string{},
			Phase: cloud.Steady(cloud.ListenerStopped), BusyUntil: s.BusyFrom(c.Now),
		}
		for _, a := range p.attributes {
			if v := c.Or(a.create, a.def); a.create != "" && v != "" {
				l.Attributes[a.name] = v
			}
		}
		if bad := s.checkAttributes(lb, p, nil, l.Attributes); bad != nil {
			return nil, bad
		}
		if !c.Holds("slb.listener-created-stopped") {
			l.Phase = cloud.Steady(cloud.ListenerRunning)
		}
		l.Tags = l.Tags.With(cloud.TagsIn(c))
		lb.Listeners[key] = l
		return done()
	}
}

// mayCreate checks quota, port clash and pending work.
func (s service) mayCreate(lb *cloud.LoadBalancer, key cloud.ListenerKey, c *api.Call) *api.Error {
	for k := range lb.Listeners {
		if k.Port == key.Port && (k.Protocol == key.Protocol || (k.Protocol != "udp" && key.Protocol != "udp")) {
			return api.BadRequest("ListenerAlreadyExists", "There is a %s listener on port %d already.", k.Protocol, k.Port)
		}
	}
	if len(lb.Listeners) >= s.Limits.ListenersPerLB {
		return api.BadRequest("ListenerNumberOverLimit", "The load balancer has %d listeners, which is its quota.", len(lb.Listeners))
	}
	for _, l := range lb.Listeners {
		if c.Now.Before(l.BusyUntil) && l.Phase.At(c.Now) == cloud.ListenerStopped {
			return api.BadRequest("ListenerProcessing", "The listener created before is still pending.")
		}
	}
	return nil
}

// checkTarget checks that the listener has somewhere to send its traffic.
func (s service) checkTarget(lb *cloud.LoadBalancer, p protocol, c *api.Call) *api.Error {
	if id := c.Str("VServerGroupId"); id != "" {
		return s.checkGroup(lb, id, p)
	}
	if c.Str("ListenerForward") == "on" {
		if !c.Has("ForwardPort") {
			return api.Missing("ForwardPort")
		}
		return nil
	}
	if !c.Has("BackendServerPort") && !c.Has("MasterSlaveServerGroupId") {
		return api.Missing("BackendServerPort")
	}
	return nil
}

// checkGroup checks that a group exists on the load balancer. TCP has a code of its own for that.
func (s service) checkGroup(lb *cloud.LoadBalancer, id string, p protocol) *api.Error {
	g, ok := s.ServerGroups.Get(id)
	if ok && g.LoadBalancerID == lb.ID {
		return nil
	}
	if p.name == "tcp" {
		return api.BadRequest("ResourceNotFound.VServerGroup", "The specified VServerGroupId does not exist.")
	}
	return groupNotFound()
}

// checkAttributes checks rules between attributes, and that what they refer to exists. have are the attributes before the
// change.
func (s service) checkAttributes(lb *cloud.LoadBalancer, p protocol, have, a api.Params) *api.Error {
	if bad := s.checkACLs(lb, have, a); bad != nil {
		return bad
	}
	if bad := s.checkCertificates(a); bad != nil {
		return bad
	}
	return checkTogether(p, a)
}

// dependency says that an attribute with a value makes another one mandatory.
type dependency struct{ name, value, needs string }

var dependencies = []dependency{
	{"AclStatus", "on", "AclType"}, {"AclStatus", "on", "AclId"},
	{"StickySession", "on", "StickySessionType"}, {"ConnectionDrain", "on", "ConnectionDrainTimeout"},
}

// stickyDependencies hold only while sticky sessions are on.
var stickyDependencies = []dependency{
	{"StickySessionType", "insert", "CookieTimeout"}, {"StickySessionType", "server", "Cookie"},
}

// checkTogether checks the attributes that others make mandatory.
func checkTogether(p protocol, a api.Params) *api.Error {
	rules := dependencies
	if a["StickySession"] == "on" {
		rules = slices.Concat(dependencies, stickyDependencies)
	}
	for _, d := range rules {
		if a[d.name] == d.value && a[d.needs] == "" {
			return api.Missing(d.needs)
		}
	}
	if p.name == "https" && a["ServerCertificateId"] == "" {
		return api.Missing("ServerCertificateId")
	}
	return nil
}

func (s service) setListener(p protocol) func(*api.Call) (any, error) {
	return func(c *api.Call) (any, error) {
		lb, err := s.writable(c)
		if err != nil {
			return nil, err
		}
		l, ok := lb.Listeners[cloud.ListenerKey{Port: c.Int("ListenerPort", 0), Protocol: p.name}]
		if !ok {
			return nil, listenerNotFound()
		}
		if bad := busyListener(l, c); bad != nil {
			return nil, bad
		}
		group := l.ServerGroupID
		if c.Str("VServerGroup") == "off" {
			group = ""
		} else if id := c.Str("VServerGroupId"); id != "" {
			if bad := s.checkGroup(lb, id, p); bad != nil {
				return nil, bad
			}
			group = id
		}
		merged := make(api.Params, len(l.Attributes))
		maps.Copy(merged, l.Attributes)
		for _, a := range p.attributes {
			if a.set != "" && c.Has(a.set) {
				merged[a.name] = c.Str(a.set)
			}
		}
		if bad := s.checkAttributes(lb, p, l.Attributes, merged); bad != nil {
			return nil, bad
		}
		l.ServerGroupID, l.Attributes = group, merged
		l.Description = c.Or("Description", l.Description)
		l.BusyUntil = s.BusyFrom(c.Now)
		return done()
	}
}

// busyListener is the refusal of a change while an earlier one is in progress; the code names what is in progress.
func busyListener(l *cloud.Listener, c *api.Call) *api.Error {
	switch l.Phase.At(c.Now) {
	case cloud.ListenerStarting:
		return api.BadRequest("OperationFailed.ListenerStatusNotSupport", "The listener is starting.")
	case cloud.ListenerStopping:
		return api.Errorf(409, "ServiceIsStopping", "The listener is stopping.")
	}
	if c.Now.Before(l.BusyUntil) {
		l.Refused++
		return inTurn(listenerBusy, l.Refused)
	}
	return nil
}

func listenerNotFound() *api.Error {
	return api.NotFound("ListenerNotFound", "The specified listener does not exist.")
}

// listener finds the one listener that a port and an optional protocol name. Without a protocol it must be the only one
// on the port.
func (s service) listener(c *api.Call) (*cloud.LoadBalancer, *cloud.Listener, error) {
	lb, err := s.writable(c)
	if err != nil {
		return nil, nil, err
	}
	var found []*cloud.Listener
	for _, l := range lb.SortedListeners() {
		if l.Port == c.Int("ListenerPort", 0) && c.Finds(l.Created) && (!c.Has("ListenerProtocol") || c.Str("ListenerProtocol") == l.Protocol) {
			found = append(found, l)
		}
	}
	switch len(found) {
	case 0:
		return nil, nil, listenerNotFound()
	case 1:
		return lb, found[0], nil
	default:
		return nil, nil, api.Missing("ListenerProtocol")
	}
}

func (s service) startListener(c *api.Call) (any, error) {
	lb, l, err := s.listener(c)
	if err != nil {
		return nil, err
	}
	if lb.Status != cloud.Active {
		return nil, api.BadRequest("LbStatusNotSupport", "The load balancer %s is %s.", lb.ID, lb.Status)
	}
	if status := l.Phase.At(c.Now); status != cloud.ListenerStopped {
		return nil, api.BadRequest("OperationFailed.ListenerStatusNotSupport", "The listener is %s, not stopped.", status)
	}
	l.Phase = s.Begin(cloud.ListenerStarting, cloud.ListenerRunning, c.Now)
	return done()
}

func (s service) stopListener(c *api.Call) (any, error) {
	_, l, err := s.listener(c)
	if err != nil {
		return nil, err
	}
	if status := l.Phase.At(c.Now); status != cloud.ListenerRunning {
		return nil, api.BadRequest("OperationFailed.ListenerStatusNotSupport", "The listener is %s, not running.", status)
	}
	l.Phase = s.Begin(cloud.ListenerStopping, cloud.ListenerStopped, c.Now)
	return done()
}

func (s service) deleteListener(c *api.Call) (any, error) {
	lb, l, err := s.listener(c)
	if err != nil {
		return nil, err
	}
	if bad := busyListener(l, c); bad != nil {
		return nil, bad
	}
	if g, ok := s.ServerGroups.Get(l.ServerGroupID); ok {
		// The group stays bound for a while after its listener is gone.
		g.BoundUntil = s.BusyFrom(c.Now)
	}
	if l.Protocol == "https" {
		s.dropExtensions(lb.ID, l.Port)
	}
	delete(lb.Listeners, l.ListenerKey)
	return done()
}
