package deploy

import (
	"context"
	"crypto/rand"
	"slices"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/model"
)

func (a *Applier) createAccess(ctx context.Context, step *model.Step) (alicloud.Job, error) {
	return "", a.call(func() error {
		id, err := a.API.CreateSecurityGroup(ctx, step.Access.SecurityGroup, rand.Text())
		if err == nil {
			a.Model.Access = &model.Access{SecurityGroup: step.Access.SecurityGroup}
			a.Model.Access.ID = id
		}
		return err
	})
}

func (a *Applier) addRules(ctx context.Context, step *model.Step) (alicloud.Job, error) {
	err := a.call(func() error { return a.API.AddSecurityRules(ctx, a.Model.Access.ID, step.Rules) })
	if err == nil {
		a.Model.Access.Rules = append(slices.Clone(a.Model.Access.Rules), step.Rules...)
	}
	return "", err
}

// removeRules needs the ids of rules, which only a read knows.
func (a *Applier) removeRules(ctx context.Context, step *model.Step) (alicloud.Job, error) {
	err := a.call(func() error { return a.API.RemoveSecurityRules(ctx, a.Model.Access.ID, step.Rules) })
	if err == nil {
		a.Model.Access.Rules = slices.DeleteFunc(slices.Clone(a.Model.Access.Rules), func(r alicloud.SecurityRule) bool { return slices.Contains(step.Rules, r) })
	}
	return "", err
}

func (a *Applier) deleteAccess(ctx context.Context, step *model.Step) (alicloud.Job, error) {
	err := a.call(func() error { return a.API.DeleteSecurityGroup(ctx, step.Access.ID) })
	if alicloud.IsNotFound(err) {
		err = nil
	}
	if err == nil {
		a.Model.Access = nil
	}
	return "", err
}
