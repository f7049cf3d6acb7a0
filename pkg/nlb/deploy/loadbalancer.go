package deploy

import (
	"context"
	"slices"

	"k8s.io/klog/v2"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/model"
)

func (a *Applier) createLoadBalancer(ctx context.Context, step *model.Step) (alicloud.Job, error) {
	lb := step.LoadBalancer
	if a.Model.Access != nil && len(step.Needs) > 0 {
		lb.SecurityGroups = append(slices.Clone(lb.SecurityGroups), a.Model.Access.ID)
	}
	err := a.Turn(func() error {
		return a.Create(ctx, lb, func(token string) (id string, err error) {
			err = a.callOnce(func() error {
				id, err = a.API.CreateNLB(ctx, lb, token)
				return err
			})
			if err == nil {
				a.takeCreated(lb, id)
			}
			return id, err
		})
	})
	return "", err
}

// takeCreated takes over an NLB that was created.
func (a *Applier) takeCreated(lb alicloud.NLB, id string) {
	lb.ID, lb.Status = id, alicloud.NLBProvisioning
	a.Model.LoadBalancer, a.Created = lb, true
}

// deleteLoadBalancer: that there is no such load balancer is one answer, which proves nothing; the next pass asks in two ways.
func (a *Applier) deleteLoadBalancer(ctx context.Context, _ *model.Step) (alicloud.Job, error) {
	job, err := a.startJob(func() (alicloud.Job, error) { return a.API.DeleteNLB(ctx, a.Model.LoadBalancer.ID) })
	if err == nil {
		a.Deleted, a.Model.LoadBalancer.Status = true, alicloud.NLBDeleting
		a.Memory.vacancies.dropFunc(a.Model.LoadBalancer.ID, func(*model.Listener) bool { return true })
	}
	return job, err
}

func (a *Applier) setAttributes(ctx context.Context, step *model.Step) (alicloud.Job, error) {
	lb := &a.Model.LoadBalancer
	job, err := a.startJob(func() (alicloud.Job, error) {
		return a.API.UpdateNLB(ctx, lb.ID, alicloud.NLBAttributes{Name: step.Want.Name, CrossZone: step.Want.CrossZone})
	})
	if err == nil && step.Want.Name != nil {
		lb.Name = *step.Want.Name
	}
	if err == nil && step.Want.CrossZone != nil {
		lb.CrossZone = *step.Want.CrossZone
	}
	return job, err
}

func (a *Applier) setZones(ctx context.Context, step *model.Step) (alicloud.Job, error) {
	lb := &a.Model.LoadBalancer
	job, err := a.startJob(func() (alicloud.Job, error) { return a.API.SetNLBZones(ctx, lb.ID, step.Want.Zones) })
	if err == nil {
		zones := slices.Clone(step.Want.Zones)
		for i := range zones {
			if at := slices.IndexFunc(lb.Zones, func(z alicloud.NLBZone) bool { return z.ZoneID == zones[i].ZoneID }); at >= 0 {
				zones[i] = lb.Zones[at]
			}
		}
		lb.Zones = zones
	}
	return job, err
}

func (a *Applier) setAddressType(ctx context.Context, step *model.Step) (alicloud.Job, error) {
	lb, want := &a.Model.LoadBalancer, *step.Want.AddressType
	var zones []alicloud.NLBZone
	for _, zone := range step.LoadBalancer.Zones {
		if want == alicloud.NLBInternet && zone.AllocationID != "" {
			zones = append(zones, alicloud.NLBZone{ZoneID: zone.ZoneID, VSwitchID: zone.VSwitchID, AllocationID: zone.AllocationID})
		}
	}
	job, err := a.startJob(func() (alicloud.Job, error) { return a.API.SetNLBAddressType(ctx, lb.ID, want, zones) })
	if err == nil || alicloud.HasCode(err, "OperationDenied.AddressTypeNotChanged") {
		lb.AddressType, err = want, nil
		for i := range lb.Zones {
			lb.Zones[i].AllocationID, lb.Zones[i].PublicIPv4 = "", ""
			for _, zone := range zones {
				if zone.ZoneID == lb.Zones[i].ZoneID {
					lb.Zones[i].AllocationID = zone.AllocationID
				}
			}
		}
	}
	return job, err
}

func (a *Applier) setIPv6(ctx context.Context, step *model.Step) (alicloud.Job, error) {
	err := a.callOnce(func() error {
		return a.API.SetNLBIPv6AddressType(ctx, a.Model.LoadBalancer.ID, *step.Want.IPv6AddressType)
	})
	if err == nil {
		a.Model.LoadBalancer.IPv6AddressType = *step.Want.IPv6AddressType
	}
	return "", err
}

func (a *Applier) joinSecurityGroups(ctx context.Context, step *model.Step) (alicloud.Job, error) {
	ids := slices.Clone(step.IDs)
	if step.Access.Name != "" && a.Model.Access != nil {
		ids = append(ids, a.Model.Access.ID)
	}
	lb := &a.Model.LoadBalancer
	join := func() (alicloud.Job, error) { return a.API.JoinSecurityGroups(ctx, lb.ID, ids) }
	job, err := a.startJob(join)
	if alicloud.IsQuota(err) && len(ids) > 1 {
		ids, a.Waits = ids[len(ids)-1:], true // that of the source ranges, if it is among them; the next pass joins the others
		job, err = a.startJob(join)
	}
	if alicloud.HasCode(err, codeMixedGroups) && len(step.Swaps) > 0 {
		klog.FromContext(ctx).Info("The old and the new security groups cannot be combined: the load balancer leaves the old ones first, and has none for a moment", "lb", lb.ID)
		a.Waits = true // the next pass joins
		a.Memory.exchanges.takeIDs(exchange{lb.ID, model.OpJoin}, step.Swaps)
		return a.leaveSecurityGroups(ctx, &model.Step{IDs: step.Swaps})
	}
	if err == nil {
		lb.SecurityGroups = append(slices.Clone(lb.SecurityGroups), ids...)
	}
	return job, err
}

const (
	// codeMixedGroups refuses basic security groups beside advanced ones.
	codeMixedGroups = "Conflict.SecurityGroup"
	codeNoGroup     = "ResourceNotFound.SecurityGroup"
)

func (a *Applier) leaveSecurityGroups(ctx context.Context, step *model.Step) (alicloud.Job, error) {
	lb := &a.Model.LoadBalancer
	job, err := a.startJob(func() (alicloud.Job, error) { return a.API.LeaveSecurityGroups(ctx, lb.ID, step.IDs) })
	if err == nil {
		lb.SecurityGroups = slices.DeleteFunc(slices.Clone(lb.SecurityGroups), func(id string) bool { return slices.Contains(step.IDs, id) })
	}
	return job, err
}

func (a *Applier) attachPackage(ctx context.Context, step *model.Step) (alicloud.Job, error) {
	lb := &a.Model.LoadBalancer
	job, err := a.startJob(func() (alicloud.Job, error) {
		return a.API.AttachBandwidthPackage(ctx, lb.ID, *step.Want.BandwidthPackage)
	})
	if err == nil {
		lb.BandwidthPackageID = *step.Want.BandwidthPackage
	}
	return job, err
}

func (a *Applier) detachPackage(ctx context.Context, step *model.Step) (alicloud.Job, error) {
	lb := &a.Model.LoadBalancer
	job, err := a.startJob(func() (alicloud.Job, error) {
		return a.API.DetachBandwidthPackage(ctx, lb.ID, *step.Want.BandwidthPackage)
	})
	if err == nil {
		lb.BandwidthPackageID = ""
		a.Memory.exchanges.takeIDs(exchange{lb.ID, model.OpAttach}, []string{*step.Want.BandwidthPackage})
	}
	return job, err
}

func (a *Applier) setProtection(ctx context.Context, step *model.Step) (alicloud.Job, error) {
	lb, want := &a.Model.LoadBalancer, step.Want
	err := a.callOnce(func() error {
		return a.API.ProtectNLB(ctx, lb.ID,
			alicloud.NLBProtection{Deletion: want.DeleteProtection, Modification: want.Modification,
				Reason: step.LoadBalancer.ModificationProtectionReason})
	})
	if err == nil && want.DeleteProtection != nil {
		lb.DeletionProtection = *want.DeleteProtection
	}
	if err == nil && want.Modification != nil {
		lb.ModificationProtection = *want.Modification
	}
	return "", err
}

func (a *Applier) tagNLB(ctx context.Context, step *model.Step) (alicloud.Job, error) {
	lb := &a.Model.LoadBalancer
	err := a.callOnce(func() error { return a.API.TagNLB(ctx, alicloud.NLBTagLoadBalancer, []string{lb.ID}, step.Tags) })
	if err == nil {
		keys := make([]string, 0, len(step.Tags))
		for _, tag := range step.Tags {
			keys = append(keys, tag.Key)
		}
		lb.Tags = append(withoutTags(lb.Tags, keys), step.Tags...)
	}
	return "", err
}

func (a *Applier) untagNLB(ctx context.Context, step *model.Step) (alicloud.Job, error) {
	lb := &a.Model.LoadBalancer
	err := a.callOnce(func() error { return a.API.UntagNLB(ctx, alicloud.NLBTagLoadBalancer, []string{lb.ID}, step.IDs) })
	if err == nil {
		lb.Tags = withoutTags(lb.Tags, step.IDs)
	}
	return "", err
}

func withoutTags(tags []alicloud.Tag, keys []string) []alicloud.Tag {
	return slices.DeleteFunc(slices.Clone(tags), func(t alicloud.Tag) bool { return slices.Contains(keys, t.Key) })
}
