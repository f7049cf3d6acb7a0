package slb

import (
	"context"
	"slices"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// dryAddress is that of a new CLB: a block for documentation, which nobody has.
const dryAddress = "192.0.2.1"

// CreateLoadBalancer implements deploy.Writer.
func (d *dryCloud) CreateLoadBalancer(_ context.Context, lb alicloud.LoadBalancer, _ string) (alicloud.LoadBalancer, error) {
	lb.ID, lb.Status = d.ids.New("clb"), "active"
	if lb.Address == "" {
		lb.Address = dryAddress
	}
	if lb.AddressIPVersion == "" {
		lb.AddressIPVersion = alicloud.IPv4
	}
	d.balancers.Create(lb.ID, lb)
	return lb, nil
}

// DeleteLoadBalancer implements deploy.Writer.
func (d *dryCloud) DeleteLoadBalancer(_ context.Context, id string) error {
	d.balancers.Delete(id)
	return nil
}

// edit changes a CLB.
func (d *dryCloud) edit(id string, change func(*alicloud.LoadBalancer)) error {
	d.balancers.Edit(id, change)
	return nil
}

// SetDeleteProtection implements deploy.Writer.
func (d *dryCloud) SetDeleteProtection(_ context.Context, id, value string) error {
	return d.edit(id, func(lb *alicloud.LoadBalancer) { lb.DeleteProtection = value })
}

// SetModificationProtection implements deploy.Writer.
func (d *dryCloud) SetModificationProtection(_ context.Context, id, status, reason string) error {
	return d.edit(id, func(lb *alicloud.LoadBalancer) {
		lb.ModificationProtection, lb.ModificationProtectionReason = status, reason
	})
}

// SetInternetSpec implements deploy.Writer.
func (d *dryCloud) SetInternetSpec(_ context.Context, id, chargeType string, bandwidth int) error {
	return d.edit(id, func(lb *alicloud.LoadBalancer) { lb.InternetChargeType, lb.Bandwidth = chargeType, bandwidth })
}

// SetInstanceChargeType implements deploy.Writer.
func (d *dryCloud) SetInstanceChargeType(_ context.Context, id, chargeType string) error {
	return d.edit(id, func(lb *alicloud.LoadBalancer) { lb.InstanceChargeType = chargeType })
}

// SetInstanceSpec implements deploy.Writer.
func (d *dryCloud) SetInstanceSpec(_ context.Context, id, spec string) error {
	return d.edit(id, func(lb *alicloud.LoadBalancer) { lb.Spec = spec })
}

// SetLoadBalancerName implements deploy.Writer.
func (d *dryCloud) SetLoadBalancerName(_ context.Context, id, name string) error {
	return d.edit(id, func(lb *alicloud.LoadBalancer) { lb.Name = name })
}

// TagLoadBalancer implements deploy.Writer.
func (d *dryCloud) TagLoadBalancer(_ context.Context, id string, tags []alicloud.Tag) error {
	return d.edit(id, func(lb *alicloud.LoadBalancer) {
		kept := slices.DeleteFunc(slices.Clone(lb.Tags), func(have alicloud.Tag) bool {
			return slices.ContainsFunc(tags, func(tag alicloud.Tag) bool { return tag.Key == have.Key })
		})
		lb.Tags = slices.Concat(kept, tags)
	})
}

// UntagLoadBalancer implements deploy.Writer.
func (d *dryCloud) UntagLoadBalancer(_ context.Context, id string, keys []string) error {
	return d.edit(id, func(lb *alicloud.LoadBalancer) {
		lb.Tags = slices.DeleteFunc(slices.Clone(lb.Tags), func(tag alicloud.Tag) bool { return slices.Contains(keys, tag.Key) })
	})
}

// CreateListener implements deploy.Writer.
func (d *dryCloud) CreateListener(_ context.Context, loadBalancerID string, listener alicloud.Listener) error {
	d.listeners.Create(listenerID(loadBalancerID, listener.ListenerKey), placed[alicloud.Listener]{loadBalancerID, listener})
	return nil
}

// SetListener implements deploy.Writer.
func (d *dryCloud) SetListener(_ context.Context, loadBalancerID string, listener alicloud.Listener) error {
	d.listeners.Edit(listenerID(loadBalancerID, listener.ListenerKey), func(have *placed[alicloud.Listener]) {
		status := have.value.Status
		have.value = listener
		have.value.Status = status
	})
	return nil
}

// ReserveReplacement implements deploy.Writer.
func (d *dryCloud) ReserveReplacement(ctx context.Context, _, _ alicloud.ListenerKey) (context.Context, error) {
	return ctx, nil
}

// StartListener implements deploy.Writer.
func (d *dryCloud) StartListener(_ context.Context, loadBalancerID string, key alicloud.ListenerKey) error {
	d.listeners.Edit(listenerID(loadBalancerID, key), func(have *placed[alicloud.Listener]) { have.value.Status = alicloud.ListenerRunning })
	return nil
}

// DeleteListener implements deploy.Writer.
func (d *dryCloud) DeleteListener(_ context.Context, loadBalancerID string, key alicloud.ListenerKey) error {
	d.listeners.Delete(listenerID(loadBalancerID, key))
	return nil
}

// CreateDomainExtension implements deploy.Writer.
func (d *dryCloud) CreateDomainExtension(context.Context, string, int, alicloud.DomainExtension) (string, error) {
	return d.ids.New("extension"), nil
}

// SetDomainExtension implements deploy.Writer.
func (d *dryCloud) SetDomainExtension(context.Context, string, string) error { return nil }

// DeleteDomainExtension implements deploy.Writer.
func (d *dryCloud) DeleteDomainExtension(context.Context, string) error { return nil }

// CreateAccessList implements deploy.Writer.
func (d *dryCloud) CreateAccessList(_ context.Context, list alicloud.AccessList) (string, error) {
	list.ID, list.Entries = d.ids.New("acl"), nil
	d.accessLists.Create(list.ID, list)
	return list.ID, nil
}

// AddAccessListEntries implements deploy.Writer.
func (d *dryCloud) AddAccessListEntries(_ context.Context, id string, entries []string) error {
	d.accessLists.Edit(id, func(list *alicloud.AccessList) { list.Entries = slices.Concat(list.Entries, entries) })
	return nil
}

// RemoveAccessListEntries implements deploy.Writer.
func (d *dryCloud) RemoveAccessListEntries(_ context.Context, id string, entries []string) error {
	d.accessLists.Edit(id, func(list *alicloud.AccessList) {
		list.Entries = slices.DeleteFunc(slices.Clone(list.Entries), func(entry string) bool { return slices.Contains(entries, entry) })
	})
	return nil
}

// DeleteAccessList implements deploy.Writer.
func (d *dryCloud) DeleteAccessList(_ context.Context, id string) error {
	d.accessLists.Delete(id)
	return nil
}

// CreateVServerGroup implements deploy.Writer.
func (d *dryCloud) CreateVServerGroup(_ context.Context, loadBalancerID, name string, backends []alicloud.Backend) (string, error) {
	group := alicloud.VServerGroup{ID: d.ids.New("group"), Name: name, LoadBalancerID: loadBalancerID, Backends: slices.Clone(backends)}
	d.groups.Create(group.ID, group)
	return group.ID, nil
}

// DeleteVServerGroup implements deploy.Writer.
func (d *dryCloud) DeleteVServerGroup(_ context.Context, id string) error {
	d.groups.Delete(id)
	return nil
}

// AddBackends implements deploy.Writer.
func (d *dryCloud) AddBackends(ctx context.Context, groupID string, backends []alicloud.Backend) error {
	return d.ReplaceBackends(ctx, groupID, nil, backends)
}

// RemoveBackends implements deploy.Writer.
func (d *dryCloud) RemoveBackends(ctx context.Context, groupID string, backends []alicloud.Backend) error {
	return d.ReplaceBackends(ctx, groupID, backends, nil)
}

// SetBackends implements deploy.Writer.
func (d *dryCloud) SetBackends(ctx context.Context, groupID string, backends []alicloud.Backend) error {
	return d.ReplaceBackends(ctx, groupID, backends, backends)
}

// ReplaceBackends implements deploy.Writer.
func (d *dryCloud) ReplaceBackends(_ context.Context, groupID string, remove, add []alicloud.Backend) error {
	d.groups.Edit(groupID, func(group *alicloud.VServerGroup) {
		kept := slices.DeleteFunc(slices.Clone(group.Backends), func(have alicloud.Backend) bool {
			return slices.ContainsFunc(remove, func(gone alicloud.Backend) bool { return gone.BackendKey == have.BackendKey })
		})
		group.Backends = slices.Concat(kept, add)
	})
	return nil
}
