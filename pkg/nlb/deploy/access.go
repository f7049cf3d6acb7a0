package deploy

import (
	"context"
	"crypto/rand"
	"slices"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/model"
)

func (a *Applier) createAccess(ctx context.Context, step *model.Step) (alicloud.Job, error) {
	return "", a.callOnce(func() error {
		id, err := a.API.CreateSecurityGroup(ctx, step.Access.SecurityGroup, rand.Text())
		if err == nil {
			a.Model.Access = &model.Access{SecurityGroup: step.Access.SecurityGroup}
			a.Model.Access.ID = id
		}
		return err
	})
}

func (a *Applier) addRules(ctx context.Context, step *model.Step) (alicloud.Job, error) {
	err := a.callOnce(func() error { return a.API.AddSecurityRules(ctx, a.Model.Access.ID, step.Rules) })
	if err == nil {
		a.Model.Access.Rules = append(slices.Clone(a.Model.Access.Rules), step.Rules...)
	}
	return "", err
}

// removeRules needs the ids of rules, which only a read knows.
func (a *Applier) removeRules(ctx context.Context, step *model.Step) (alicloud.Job, error) {
	err := a.callOnce(func() error { return a.API.RemoveSecurityRules(ctx, a.Model.Access.ID, step.Rules) })
	if err == nil {
		a.Model.Access.Rules = slices.DeleteFunc(slices.Clone(a.Model.Access.Rules), func(r alicloud.SecurityRule) bool {
			return slices.Contains(step.Rules, r)
		})
	}
	return "", err
}

// codeAccessInUse refuses to delete a security group in which something is, or was a moment ago.
// Source: https://www.alibabacloud.com/help/en/ecs/developer-reference/api-ecs-2014-05-26-deletesecuritygroup.
const codeAccessInUse = "DependencyViolation"

// refusesDeletion reports whether the cloud refuses for sure to delete a group: something uses it, or the role may not delete it.
func refusesDeletion(err error) bool {
	return alicloud.HasCode(err, codeAccessInUse, codeGroupInUse) || isRefusal(err) && !alicloud.IsAuth(err)
}

func (a *Applier) deleteAccess(ctx context.Context, step *model.Step) (alicloud.Job, error) {
	if err := a.Memory.uses.Err(step.Access.ID, time.Now()); err != nil {
		return "", known{err}
	}
	err := a.callOnce(func() error { return a.API.DeleteSecurityGroup(ctx, step.Access.ID) })
	a.Memory.uses.Note(step.Access.ID, err, refusesDeletion(err), time.Now())
	if alicloud.IsNotFound(err) {
		err = nil
	}
	if err == nil {
		a.Model.Access = nil
	}
	return "", err
}
