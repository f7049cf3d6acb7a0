package slb

import (
	"slices"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

func (s service) groupActions() []api.Action {
	id := api.Str("VServerGroupId", api.Required)
	servers := func(name string) []api.Param { return []api.Param{id, api.JSONArray(name, api.Required)} }
	write := func(name string, params []api.Param, run func(*api.Call) (any, error)) api.Action {
		return api.Action{Name: name, Kind: api.Write, Params: params, Hold: holdGroup, Busy: groupBusy[0], Run: run}
	}
	return []api.Action{
		{Name: "DescribeVServerGroups", Kind: api.Read,
			Params: []api.Param{lbID(), api.Str("Description"), api.Flag("IncludeListener"), api.Flag("IncludeRule"),
				cloud.TagParams(cloud.MaxTags)}, Run: s.describeGroups},
		{Name: "DescribeVServerGroupAttribute", Kind: api.Read, Params: []api.Param{id}, Run: s.describeGroup},
		{Name: "CreateVServerGroup", Kind: api.Write,
			Params: []api.Param{lbID(), api.Str("VServerGroupName", api.Len(1, s.Limits.NameCharacters)), api.JSONArray("BackendServers"),
				cloud.TagParams(cloud.MaxTags)}, Run: s.createGroup},
		write("AddVServerGroupBackendServers", servers("BackendServers"), s.changing(s.addBackends)),
		write("RemoveVServerGroupBackendServers", servers("BackendServers"), s.changing(s.removeBackends)),
		write("SetVServerGroupAttribute",
			[]api.Param{id, api.Str("VServerGroupName", api.Len(1, s.Limits.NameCharacters)), api.JSONArray("BackendServers")},
			s.changing(s.setGroup)),
		write("ModifyVServerGroupBackendServers",
			[]api.Param{id, api.JSONArray("OldBackendServers", api.Required), api.JSONArray("NewBackendServers", api.Required)},
			s.changing(s.modifyBackends)),
		write("DeleteVServerGroup", []api.Param{id}, s.deleteGroup),
	}
}

// groupNotFound is really a 404 with the code of a bad parameter.
func groupNotFound() *api.Error {
	return api.NotFound("InvalidParameter", "The specified VServerGroupId does not exist.")
}

func (s service) group(c *api.Call) (*cloud.ServerGroup, *cloud.LoadBalancer, error) {
	g, ok := s.ServerGroups.Get(c.Str("VServerGroupId"))
	if !ok || !c.Finds(g.Created) {
		return nil, nil, groupNotFound()
	}
	lb, ok := s.LoadBalancers.Get(g.LoadBalancerID)
	if !ok {
		return nil, nil, groupNotFound()
	}
	return g, lb, nil
}

// writableGroup finds the group of a call that changes its backend servers.
func (s service) writableGroup(c *api.Call) (*cloud.ServerGroup, *cloud.LoadBalancer, error) {
	g, lb, err := s.group(c)
	if err != nil {
		return nil, nil, err
	}
	if lb.Status == cloud.Locked {
		return nil, nil, api.BadRequest("LbStatusNotSupport", "The load balancer %s is locked.", lb.ID)
	}
	if c.Now.Before(g.BusyUntil) {
		g.Refused++
		return nil, nil, inTurn(groupBusy, g.Refused)
	}
	return g, lb, nil
}

func (s service) createGroup(c *api.Call) (any, error) {
	lb, err := s.writable(c)
	if err != nil {
		return nil, err
	}
	if bad := s.checkGroupQuota(c, lb); bad != nil {
		return nil, bad
	}
	g := &cloud.ServerGroup{Object: s.NewObject("rsp"), Name: c.Or("VServerGroupName", "Group1"), LoadBalancerID: lb.ID,
		BusyUntil: s.BusyFrom(c.Now)}
	if c.Has("BackendServers") {
		backends, bad := s.parseBackends(c, "BackendServers")
		if bad != nil {
			return nil, bad
		}
		if bad := s.admit(lb, g, backends, c); bad != nil {
			return nil, bad
		}
	}
	g.Tags = g.Tags.With(cloud.TagsIn(c))
	s.ServerGroups.Add(g)
	lb.Groups = append(lb.Groups, g.ID)
	return s.backendsAnswer(g, lb), nil
}

// checkGroupQuota admits one more vServer group. Pages have no quota; more groups than listeners are where one would show.
func (s service) checkGroupQuota(c *api.Call, lb *cloud.LoadBalancer) *api.Error {
	if len(lb.Groups) >= published.ListenersPerLB {
		c.Holds("slb.groups-without-quota")
	}
	if most := s.Limits.GroupsPerLB; most > 0 && len(lb.Groups) >= most {
		return api.BadRequest("OverQuota", "The load balancer %s has %d vServer groups, which is its quota.", lb.ID, most)
	}
	return nil
}

// backendChange changes the backend servers of a group, or nothing where it fails.
type backendChange func(c *api.Call, g *cloud.ServerGroup, lb *cloud.LoadBalancer) *api.Error

// changing is the frame of the calls that change a group's backend servers: the group must be free. Each says whether it is busy
// afterwards.
func (s service) changing(change backendChange) func(*api.Call) (any, error) {
	return func(c *api.Call) (any, error) {
		g, lb, err := s.writableGroup(c)
		if err != nil {
			return nil, err
		}
		if bad := change(c, g, lb); bad != nil {
			return nil, bad
		}
		return s.backendsAnswer(g, lb), nil
	}
}

func (s service) addBackends(c *api.Call, g *cloud.ServerGroup, lb *cloud.LoadBalancer) *api.Error {
	backends, bad := s.parseBackends(c, "BackendServers")
	if bad != nil {
		return bad
	}
	if bad := s.admit(lb, g, backends, c); bad != nil {
		return bad
	}
	g.BusyUntil = s.BusyFrom(c.Now)
	return nil
}

// removeBackends ignores servers that are not in the group, as the cloud does.
func (s service) removeBackends(c *api.Call, g *cloud.ServerGroup, _ *cloud.LoadBalancer) *api.Error {
	backends, bad := s.parseBackends(c, "BackendServers")
	if bad != nil {
		return bad
	}
	for _, b := range backends {
		if indexOf(g.Backends, b) < 0 && !c.Holds("slb.absent-server-ignored") {
			return api.BadRequest("InvalidServerId.NotExist", "The server %s is not in the group.", b.ServerID)
		}
	}
	s.evict(g, backends)
	g.BusyUntil = s.BusyFrom(c.Now)
	return nil
}

// setGroup changes the name, and weights and descriptions of backend servers; it neither adds nor removes. A change of the name alone keeps
// nobody waiting.
func (s service) setGroup(c *api.Call, g *cloud.ServerGroup, _ *cloud.LoadBalancer) *api.Error {
	updated := slices.Clone(g.Backends)
	if c.Has("BackendServers") {
		backends, bad := s.parseBackends(c, "BackendServers")
		if bad != nil {
			return bad
		}
		for _, b := range backends {
			i := indexOf(updated, b)
			if i < 0 {
				return api.BadRequest("InvalidServerId.NotExist", "The server %s with port %d is not in the group.", b.ServerID, b.Port)
			}
			updated[i].Weight = b.Weight
			if b.Description != "" {
				updated[i].Description = b.Description
			}
		}
		g.BusyUntil = s.BusyFrom(c.Now)
	} else if !c.Holds("slb.set-keeps-servers") {
		updated = nil
	}
	s.SetBackends(g, updated)
	g.Name = c.Or("VServerGroupName", g.Name)
	return nil
}

// modifyBackends swaps backend servers in one call.
func (s service) modifyBackends(c *api.Call, g *cloud.ServerGroup, lb *cloud.LoadBalancer) *api.Error {
	old, bad := s.parseBackends(c, "OldBackendServers")
	if bad != nil {
		return bad
	}
	fresh, bad := s.parseBackends(c, "NewBackendServers")
	if bad != nil {
		return bad
	}
	before := slices.Clone(g.Backends)
	s.evict(g, old)
	if bad := s.admit(lb, g, fresh, c); bad != nil {
		s.SetBackends(g, before)
		return bad
	}
	g.BusyUntil = s.BusyFrom(c.Now)
	return nil
}

func (s service) deleteGroup(c *api.Call) (any, error) {
	g, lb, err := s.group(c)
	if err != nil {
		return nil, err
	}
	if len(lb.UsedBy(g.ID)) > 0 || c.Now.Before(g.BoundUntil) {
		return nil, api.BadRequest("RspoolVipExist", "there are vips associating with this vServer group.")
	}
	if c.Now.Before(g.BusyUntil) {
		return nil, api.BadRequest("OperationFailed.ServiceGroupProcessing", "The vServer group is being configured.")
	}
	s.RemoveGroup(g)
	lb.Groups = slices.DeleteFunc(lb.Groups, func(id string) bool { return id == g.ID })
	return done()
}
