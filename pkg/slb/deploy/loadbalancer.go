package deploy

import (
	"context"
	"slices"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/model"
)

func (a *Applier) setName(ctx context.Context, step model.Step) error {
	have, name := &a.model.LoadBalancer, step.LoadBalancer.Name
	if err := a.callOnce(ctx, func() error { return a.api.SetLoadBalancerName(ctx, have.ID, name) }); err != nil {
		return err
	}
	have.Name = name
	return nil
}

func (a *Applier) setProtection(ctx context.Context, step model.Step) error {
	have, protection := &a.model.LoadBalancer, step.LoadBalancer.DeleteProtection
	if err := a.callOnce(ctx, func() error { return a.api.SetDeleteProtection(ctx, have.ID, protection) }); err != nil {
		return err
	}
	have.DeleteProtection = protection
	return nil
}

func (a *Applier) setModification(ctx context.Context, step model.Step) error {
	have, want := &a.model.LoadBalancer, step.LoadBalancer
	if err := a.callOnce(ctx, func() error {
		return a.api.SetModificationProtection(ctx, have.ID, want.ModificationProtection, want.ModificationProtectionReason)
	}); err != nil {
		return err
	}
	have.ModificationProtection, have.ModificationProtectionReason = want.ModificationProtection, want.ModificationProtectionReason
	return nil
}

func (a *Applier) setCharge(ctx context.Context, step model.Step) error {
	have, chargeType := &a.model.LoadBalancer, step.LoadBalancer.InstanceChargeType
	if err := a.callOnce(ctx, func() error { return a.api.SetInstanceChargeType(ctx, have.ID, chargeType) }); err != nil {
		return err
	}
	have.InstanceChargeType = chargeType
	return nil
}

func (a *Applier) setSpec(ctx context.Context, step model.Step) error {
	have, spec := &a.model.LoadBalancer, step.LoadBalancer.Spec
	if err := a.callOnce(ctx, func() error { return a.api.SetInstanceSpec(ctx, have.ID, spec) }); err != nil {
		return err
	}
	have.Spec = spec
	return nil
}

func (a *Applier) setInternet(ctx context.Context, step model.Step) error {
	have, want := &a.model.LoadBalancer, step.LoadBalancer
	if err := a.callOnce(ctx, func() error {
		return a.api.SetInternetSpec(ctx, have.ID, want.InternetChargeType, want.Bandwidth)
	}); err != nil {
		return err
	}
	if have.InternetChargeType != want.InternetChargeType {
		a.Charge = AskedCharge(have.ID, want.InternetChargeType, time.Now())
	}
	have.InternetChargeType, have.Bandwidth = want.InternetChargeType, want.Bandwidth
	return nil
}

func (a *Applier) untagCLB(ctx context.Context, step model.Step) error {
	have := &a.model.LoadBalancer
	if err := a.callOnce(ctx, func() error { return a.api.UntagLoadBalancer(ctx, have.ID, step.TagKeys) }); err != nil {
		return err
	}
	a.Untagged = append(a.Untagged, step.TagKeys...)
	have.Tags = slices.DeleteFunc(slices.Clone(have.Tags), func(t alicloud.Tag) bool { return slices.Contains(step.TagKeys, t.Key) })
	return nil
}
