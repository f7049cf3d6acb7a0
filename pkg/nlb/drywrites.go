package nlb

import (
	"context"
	"math"
	"slices"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// edit changes an NLB.
func (d *dryCloud) edit(id string, change func(*alicloud.NLB)) (alicloud.Job, error) {
	d.balancers.Edit(id, change)
	return "", nil
}

// CreateNLB implements deploy.Writer.
func (d *dryCloud) CreateNLB(_ context.Context, lb alicloud.NLB, _ string) (string, error) {
	lb.ID, lb.Status = d.ids.New("nlb"), alicloud.NLBActive
	lb.DNSName = lb.ID + ".example.com"
	d.balancers.Create(lb.ID, lb)
	return lb.ID, nil
}

// DeleteNLB implements deploy.Writer.
func (d *dryCloud) DeleteNLB(_ context.Context, id string) (alicloud.Job, error) {
	d.balancers.Delete(id)
	return "", nil
}

// UpdateNLB implements deploy.Writer.
func (d *dryCloud) UpdateNLB(_ context.Context, id string, attributes alicloud.NLBAttributes) (alicloud.Job, error) {
	return d.edit(id, func(lb *alicloud.NLB) {
		set(&lb.Name, attributes.Name)
		set(&lb.CrossZone, attributes.CrossZone)
	})
}

// set takes over a value that is given.
func set[T any](into, value *T) {
	if value != nil {
		*into = *value
	}
}

// ProtectNLB implements deploy.Writer.
func (d *dryCloud) ProtectNLB(_ context.Context, id string, protection alicloud.NLBProtection) error {
	_, err := d.edit(id, func(lb *alicloud.NLB) {
		set(&lb.DeletionProtection, protection.Deletion)
		if set(&lb.ModificationProtection, protection.Modification); protection.Modification != nil {
			lb.ModificationProtectionReason = protection.Reason
		}
	})
	return err
}

// SetNLBAddressType implements deploy.Writer.
func (d *dryCloud) SetNLBAddressType(_ context.Context, id, addressType string, zones []alicloud.NLBZone) (alicloud.Job, error) {
	return d.edit(id, func(lb *alicloud.NLB) {
		lb.AddressType, lb.Zones = addressType, slices.Clone(lb.Zones)
		for i := range lb.Zones {
			lb.Zones[i].AllocationID, lb.Zones[i].PublicIPv4 = "", ""
			for _, zone := range zones {
				if zone.ZoneID == lb.Zones[i].ZoneID {
					lb.Zones[i].AllocationID = zone.AllocationID
				}
			}
		}
	})
}

// SetNLBZones implements deploy.Writer.
func (d *dryCloud) SetNLBZones(_ context.Context, id string, zones []alicloud.NLBZone) (alicloud.Job, error) {
	return d.edit(id, func(lb *alicloud.NLB) {
		before := lb.Zones
		lb.Zones = slices.Clone(zones)
		for i := range lb.Zones {
			if at := slices.IndexFunc(before, func(zone alicloud.NLBZone) bool { return zone.ZoneID == lb.Zones[i].ZoneID }); at >= 0 {
				lb.Zones[i] = before[at]
			}
		}
	})
}

// SetNLBIPv6AddressType implements deploy.Writer.
func (d *dryCloud) SetNLBIPv6AddressType(_ context.Context, id, addressType string) error {
	_, err := d.edit(id, func(lb *alicloud.NLB) { lb.IPv6AddressType = addressType })
	return err
}

// JoinSecurityGroups implements deploy.Writer.
func (d *dryCloud) JoinSecurityGroups(_ context.Context, id string, groups []string) (alicloud.Job, error) {
	return d.edit(id, func(lb *alicloud.NLB) { lb.SecurityGroups = slices.Concat(lb.SecurityGroups, groups) })
}

// LeaveSecurityGroups implements deploy.Writer.
func (d *dryCloud) LeaveSecurityGroups(_ context.Context, id string, groups []string) (alicloud.Job, error) {
	return d.edit(id, func(lb *alicloud.NLB) { lb.SecurityGroups = notIn(lb.SecurityGroups, groups) })
}

// AttachBandwidthPackage implements deploy.Writer.
func (d *dryCloud) AttachBandwidthPackage(_ context.Context, id, pack string) (alicloud.Job, error) {
	return d.edit(id, func(lb *alicloud.NLB) { lb.BandwidthPackageID = pack })
}

// DetachBandwidthPackage implements deploy.Writer.
func (d *dryCloud) DetachBandwidthPackage(_ context.Context, id, _ string) (alicloud.Job, error) {
	return d.edit(id, func(lb *alicloud.NLB) { lb.BandwidthPackageID = "" })
}

// CreateNLBGroup implements deploy.Writer.
func (d *dryCloud) CreateNLBGroup(_ context.Context, g alicloud.NLBGroup, _ string) (string, alicloud.Job, error) {
	g.ID, g.Status, g.ServerCount = d.ids.New("group"), alicloud.NLBGroupAvailable, 0
	d.groups.Create(g.ID, g)
	d.servers.Create(g.ID, nil)
	return g.ID, "", nil
}

// UpdateNLBGroup implements deploy.Writer. What a group is to be like is not compared again.
func (d *dryCloud) UpdateNLBGroup(context.Context, string, alicloud.NLBGroupSettings) (alicloud.Job, error) {
	return "", nil
}

// DeleteNLBGroup implements deploy.Writer.
func (d *dryCloud) DeleteNLBGroup(_ context.Context, id string) (alicloud.Job, error) {
	d.groups.Delete(id)
	return "", nil
}

// ServersPerCall implements deploy.Writer: what is not sent has no limit.
func (d *dryCloud) ServersPerCall() int { return math.MaxInt }

// AddNLBServers implements deploy.Writer.
func (d *dryCloud) AddNLBServers(_ context.Context, group string, servers []alicloud.NLBServer) (alicloud.Job, error) {
	return d.change(group, nil, servers)
}

// UpdateNLBServers implements deploy.Writer.
func (d *dryCloud) UpdateNLBServers(_ context.Context, group string, servers []alicloud.NLBServer) (alicloud.Job, error) {
	return d.change(group, servers, servers)
}

// RemoveNLBServers implements deploy.Writer.
func (d *dryCloud) RemoveNLBServers(_ context.Context, group string, servers []alicloud.NLBServer) (alicloud.Job, error) {
	return d.change(group, servers, nil)
}

// change removes servers from a group, and adds others.
func (d *dryCloud) change(group string, remove, add []alicloud.NLBServer) (alicloud.Job, error) {
	d.servers.Edit(group, func(servers *[]alicloud.NLBServer) {
		kept := slices.DeleteFunc(slices.Clone(*servers), func(have alicloud.NLBServer) bool {
			return slices.ContainsFunc(remove, func(gone alicloud.NLBServer) bool {
				return gone.ID == have.ID && gone.Port == have.Port && (gone.IP == have.IP || gone.Type == alicloud.NLBServerECS)
			})
		})
		*servers = slices.Concat(kept, add)
	})
	d.groups.Edit(group, func(g *alicloud.NLBGroup) { g.ServerCount += len(add) - len(remove) })
	return "", nil
}

// CreateNLBListener implements deploy.Writer.
func (d *dryCloud) CreateNLBListener(_ context.Context, l alicloud.NLBListener, _ string) (string, alicloud.Job, error) {
	l.ID, l.Status = d.ids.New("listener"), alicloud.NLBListenerRunning
	d.listeners.Create(l.ID, l)
	d.certificates.Create(l.ID, nil)
	if l.ServerGroupID != nil {
		d.groups.Edit(*l.ServerGroupID, func(g *alicloud.NLBGroup) { g.LoadBalancers = append(slices.Clone(g.LoadBalancers), l.LoadBalancerID) })
	}
	return l.ID, "", nil
}

// UpdateNLBListener implements deploy.Writer. Of what a listener is to be like, only to whom it belongs matters to others.
func (d *dryCloud) UpdateNLBListener(_ context.Context, id string, settings alicloud.NLBListenerSettings) (alicloud.Job, error) {
	d.listeners.Edit(id, func(l *alicloud.NLBListener) {
		if settings.Description != nil {
			l.Description = settings.Description
		}
		if settings.ServerGroupID != nil {
			l.ServerGroupID = settings.ServerGroupID
		}
	})
	return "", nil
}

// DeleteNLBListener implements deploy.Writer.
func (d *dryCloud) DeleteNLBListener(_ context.Context, id string) (alicloud.Job, error) {
	d.listeners.Delete(id)
	return "", nil
}

// StartNLBListener implements deploy.Writer.
func (d *dryCloud) StartNLBListener(_ context.Context, id string) (alicloud.Job, error) {
	d.listeners.Edit(id, func(l *alicloud.NLBListener) { l.Status = alicloud.NLBListenerRunning })
	return "", nil
}

// AddCertificates implements deploy.Writer.
func (d *dryCloud) AddCertificates(_ context.Context, listener string, ids []string) (alicloud.Job, error) {
	d.certificates.Edit(listener, func(have *[]string) { *have = slices.Concat(*have, ids) })
	return "", nil
}

// RemoveCertificates implements deploy.Writer.
func (d *dryCloud) RemoveCertificates(_ context.Context, listener string, ids []string) (alicloud.Job, error) {
	d.certificates.Edit(listener, func(have *[]string) { *have = notIn(*have, ids) })
	return "", nil
}

// CreateSecurityGroup implements deploy.Writer.
func (d *dryCloud) CreateSecurityGroup(_ context.Context, g alicloud.SecurityGroup, _ string) (string, error) {
	g.ID = d.ids.New("sg")
	d.securityGroups.Create(g.ID, g)
	d.rules.Create(g.ID, nil)
	return g.ID, nil
}

// DeleteSecurityGroup implements deploy.Writer.
func (d *dryCloud) DeleteSecurityGroup(_ context.Context, id string) error {
	d.securityGroups.Delete(id)
	return nil
}

// AddSecurityRules implements deploy.Writer.
func (d *dryCloud) AddSecurityRules(_ context.Context, id string, rules []alicloud.SecurityRule) error {
	d.rules.Edit(id, func(have *[]alicloud.SecurityRule) { *have = slices.Concat(*have, rules) })
	return nil
}

// RemoveSecurityRules implements deploy.Writer.
func (d *dryCloud) RemoveSecurityRules(_ context.Context, id string, rules []alicloud.SecurityRule) error {
	d.rules.Edit(id, func(have *[]alicloud.SecurityRule) {
		*have = slices.DeleteFunc(slices.Clone(*have), func(rule alicloud.SecurityRule) bool {
			return slices.ContainsFunc(rules, func(gone alicloud.SecurityRule) bool { return gone.CIDR == rule.CIDR && gone.Drop == rule.Drop })
		})
	})
	return nil
}

// retagged returns tags with some of them replaced, and without those of the keys.
func retagged(tags, add []alicloud.Tag, remove []string) []alicloud.Tag {
	kept := slices.DeleteFunc(slices.Clone(tags), func(have alicloud.Tag) bool {
		return slices.Contains(remove, have.Key) || slices.ContainsFunc(add, func(tag alicloud.Tag) bool { return tag.Key == have.Key })
	})
	return append(kept, add...)
}

// retag changes the tags of NLBs or server groups.
func (d *dryCloud) retag(kind string, ids []string, add []alicloud.Tag, remove []string) error {
	for _, id := range ids {
		if kind == alicloud.NLBTagGroup {
			d.groups.Edit(id, func(g *alicloud.NLBGroup) { g.Tags = retagged(g.Tags, add, remove) })
			continue
		}
		d.balancers.Edit(id, func(lb *alicloud.NLB) { lb.Tags = retagged(lb.Tags, add, remove) })
	}
	return nil
}

// TagNLB implements deploy.Writer.
func (d *dryCloud) TagNLB(_ context.Context, kind string, ids []string, tags []alicloud.Tag) error {
	return d.retag(kind, ids, tags, nil)
}

// UntagNLB implements deploy.Writer.
func (d *dryCloud) UntagNLB(_ context.Context, kind string, ids, keys []string) error {
	return d.retag(kind, ids, nil, keys)
}
