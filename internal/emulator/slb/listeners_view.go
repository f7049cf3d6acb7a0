package slb

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

func describeListenersParams() []api.Param {
	return append(api.Tokened("MaxResults", pageLimit), api.ListOf("LoadBalancerId", maxFilter), api.Num("ListenerPort", 1, 65535),
		api.Str("ListenerProtocol", api.OneOf("tcp", "udp", "http", "https")), api.Str("Description"), cloud.TagParams(cloud.MaxTags))
}

// owned is a listener with the load balancer that it belongs to.
type owned struct {
	lb *cloud.LoadBalancer
	*cloud.Listener
}

func (s service) describeListeners(c *api.Call) (any, error) {
	ids, tags := c.List("LoadBalancerId"), cloud.TagsIn(c)
	var all []owned
	for _, lb := range s.candidates(ids) {
		for _, l := range lb.SortedListeners() {
			if listenerMatches(l, c) && l.Tags.Match(tags) && c.Sees(l.Created) {
				all = append(all, owned{lb, l})
			}
		}
	}
	slices.SortFunc(all, func(a, b owned) int { return int(a.Seq - b.Seq) })
	size := c.Int("MaxResults", 20)
	items, next, err := api.TokenPage(c, all, size, func(o owned) int64 { return o.Seq })
	if err != nil {
		return nil, err
	}
	listeners := make([]api.Object, 0, len(items))
	for _, o := range items {
		listeners = append(listeners, s.listenerListView(o.lb, o.Listener, c))
	}
	return api.Object{
		{Name: "MaxResults", Value: size}, {Name: "NextToken", Value: next},
		{Name: "TotalCount", Value: len(all)}, {Name: "Listeners", Value: listeners},
	}, nil
}

// candidates are the named load balancers, or all.
func (s service) candidates(ids []string) []*cloud.LoadBalancer {
	if len(ids) == 0 {
		return s.LoadBalancers.Select(func(*cloud.LoadBalancer) bool { return true })
	}
	var found []*cloud.LoadBalancer
	for _, id := range ids {
		if lb, ok := s.LoadBalancers.Get(id); ok {
			found = append(found, lb)
		}
	}
	return found
}

func listenerMatches(l *cloud.Listener, c *api.Call) bool {
	return (!c.Has("ListenerPort") || c.Int("ListenerPort", 0) == l.Port) &&
		(!c.Has("ListenerProtocol") || c.Str("ListenerProtocol") == l.Protocol) &&
		(!c.Has("Description") || c.Str("Description") == l.Description)
}

func protocolOf(name string) protocol {
	i := slices.IndexFunc(protocols, func(p protocol) bool { return p.name == name })
	return protocols[i]
}

// listenerListView has the shared attributes at the top and the others in the protocol's own config object, where
// booleans travel as strings.
func (s service) listenerListView(lb *cloud.LoadBalancer, l *cloud.Listener, c *api.Call) api.Object {
	p, attributes := protocolOf(l.Protocol), s.shown(l, c)
	top, config := api.Object{}, api.Object{}
	for _, a := range p.attributes {
		v, ok := attributes[a.name]
		if !ok {
			continue
		}
		switch {
		case a.top:
			top = append(top, api.Field{Name: a.name, Value: a.value(attributes)})
		case a.Type == api.Bool && a.name != "HealthCheckTcpFastCloseEnabled":
			config = append(config, api.Field{Name: a.name, Value: v})
		default:
			config = append(config, api.Field{Name: a.name, Value: a.value(attributes)})
		}
	}
	config = append(config, switchTwin(l)...)
	return slices.Concat(listenerHead(lb, l, c), top, api.Object{
		{Name: "AclIds", Value: aclIDs(l)}, {Name: "Tags", Value: l.Tags.Views()},
		{Name: p.title + "ListenerConfig", Value: config},
	})
}

func listenerHead(lb *cloud.LoadBalancer, l *cloud.Listener, c *api.Call) api.Object {
	return api.Object{
		{Name: "LoadBalancerId", Value: lb.ID}, {Name: "ListenerPort", Value: l.Port}, {Name: "ListenerProtocol", Value: l.Protocol},
		{Name: "Status", Value: l.Phase.At(c.Now)}, {Name: "Description", Value: l.Description}, {Name: "VServerGroupId", Value: l.ServerGroupID},
	}
}

// switchTwin answers HealthCheck beside HealthCheckSwitch, which layer 4 listeners are set with.
func switchTwin(l *cloud.Listener) api.Object {
	if v, ok := l.Attributes["HealthCheckSwitch"]; ok {
		return api.Object{{Name: "HealthCheck", Value: v}}
	}
	return nil
}

// shown are a listener's attributes as answers have them: AclId is the one field that does not say what was set.
func (s service) shown(l *cloud.Listener, c *api.Call) api.Params {
	ids := aclIDs(l)
	if len(ids) < 2 {
		return l.Attributes
	}
	if c.Holds("slb.several-acls"); s.SeveralACLs == cloud.ACLIDJoined {
		return l.Attributes
	}
	shown := maps.Clone(api.Params(l.Attributes))
	shown["AclId"] = ""
	if s.SeveralACLs == cloud.ACLIDFirst {
		shown["AclId"] = ids[0]
	}
	return shown
}

func aclIDs(l *cloud.Listener) []string {
	if id := l.Attributes["AclId"]; id != "" {
		return strings.Split(id, ",")
	}
	return []string{}
}

func (s service) describeListener(p protocol) func(*api.Call) (any, error) {
	return func(c *api.Call) (any, error) {
		lb, err := s.loadBalancer(c)
		if err != nil {
			return nil, err
		}
		port, _ := strconv.Atoi(c.Str("ListenerPort"))
		l, ok := lb.Listeners[cloud.ListenerKey{Port: port, Protocol: p.name}]
		if !ok || !c.Finds(l.Created) {
			return nil, listenerNotFound()
		}
		o, attributes := listenerHead(lb, l, c), s.shown(l, c)
		for _, a := range p.attributes {
			if _, ok := attributes[a.name]; ok {
				o = append(o, api.Field{Name: a.name, Value: a.value(attributes)})
			}
		}
		if v, ok := attributes["ListenerForward"]; ok && v == "off" && !c.Holds("slb.forward-off") {
			o = slices.DeleteFunc(o, func(f api.Field) bool { return f.Name == "ListenerForward" })
		}
		return slices.Concat(o, switchTwin(l), api.Object{
			{Name: "AclIds", Value: api.Object{{Name: "AclId", Value: aclIDs(l)}}},
			{Name: "Tags", Value: tagList{l.Tags.Views()}},
		}, s.layer7(lb, l)), nil
	}
}

// layer7 are the fields that only HTTP and HTTPS listeners answer.
func (s service) layer7(lb *cloud.LoadBalancer, l *cloud.Listener) api.Object {
	if l.Protocol != "http" && l.Protocol != "https" {
		return nil
	}
	o := api.Object{
		{Name: "SecurityStatus", Value: "off"},
		{Name: "Rules", Value: api.Object{{Name: "Rule", Value: []string{}}}},
	}
	if l.Protocol == "https" {
		o = append(o, api.Field{Name: "DomainExtensions", Value: api.Object{{Name: "DomainExtension", Value: s.extensionViews(lb.ID, l)}}})
	}
	return o
}
