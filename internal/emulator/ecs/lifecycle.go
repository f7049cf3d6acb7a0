package ecs

import (
	"errors"
	"net/http"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

// maxAmount is how many instances one RunInstances call may create.
const maxAmount = 100

func runInstancesParams() []api.Param {
	return []api.Param{
		api.Str("ImageId", api.Required), api.Str("InstanceType", api.Required), api.Str("VSwitchId", api.Required),
		api.Str("SecurityGroupId", api.Required), api.Str("ZoneId"), api.Str("InstanceName", api.Len(2, 128)),
		api.Str("HostName", api.Len(2, 64)),
		api.Num("Amount", 1, maxAmount), api.Num("MinAmount", 1, maxAmount), api.Str("PrivateIpAddress"),
		api.Str("InstanceChargeType", api.OneOf("PostPaid", "PrePaid")),
		api.Str("SpotStrategy", api.OneOf("NoSpot", "SpotWithPriceLimit", "SpotAsPriceGo")),
		api.Str("RamRoleName", api.Len(1, 64)), api.Str("HttpTokens", api.OneOf("optional", "required")),
		api.Str("HttpEndpoint", api.OneOf("enabled", "disabled")),
		api.Str("UserData", api.Len(0, 32768)), cloud.TagParams(cloud.MaxTags),
		api.ObjectsOf("NetworkInterface", 2, api.Flag("SourceDestCheck"), api.Str("VSwitchId")),
		api.Str("ClientToken", api.Len(1, 64)), api.Flag("DryRun"),
	}
}

type instanceIDs struct {
	InstanceIdSets struct{ InstanceIdSet []string } //nolint:revive // names on the wire
}

func (e service) runInstances(c *api.Call) (any, error) {
	vsw, ok := e.VSwitches.Get(c.Str("VSwitchId"))
	if !ok {
		return nil, api.NotFound("InvalidVSwitchId.NotFound", "The specified vSwitch %s does not exist.", c.Str("VSwitchId"))
	}
	amount := c.Int("Amount", 1)
	if c.Has("ZoneId") && c.Str("ZoneId") != vsw.ZoneID {
		return nil, api.BadRequest("InvalidVSwitchId.NotBelongToZone", "The vSwitch %s is not in zone %s.", vsw.ID, c.Str("ZoneId"))
	}
	if c.Has("PrivateIpAddress") && amount > 1 {
		return nil, api.Invalid("PrivateIpAddress", "several instances cannot share an address")
	}
	if e.CheckRole(c.Str("RamRoleName")) != nil {
		return nil, api.NotFound("InvalidRamRole.NotFound", "The specified RAM role %s does not exist.", c.Str("RamRoleName"))
	}
	if c.Bool("DryRun", false) {
		return nil, dryRun()
	}
	mismatch := api.BadRequest("IdempotentParameterMismatch", "The ClientToken was used before with other parameters.")
	return e.Tokens.Once(c, mismatch, func() (any, error) {
		if vsw.Free() < amount {
			return nil, noAddress(vsw)
		}
		var answer instanceIDs
		for range amount {
			i, err := e.AddInstance("", e.spec(c), e.Begin(cloud.Pending, cloud.Running, c.Now))
			if err != nil {
				return nil, placement(err, vsw)
			}
			answer.InstanceIdSets.InstanceIdSet = append(answer.InstanceIdSets.InstanceIdSet, i.ID)
		}
		return answer, nil
	})
}

func placement(err error, vsw *cloud.VSwitch) error {
	switch {
	case errors.Is(err, cloud.ErrNoAddress):
		return noAddress(vsw)
	case errors.Is(err, cloud.ErrAddressTaken):
		return api.BadRequest("InvalidPrivateIpAddress.Duplicated", "The private address is in use or outside the vSwitch %s.", vsw.ID)
	default:
		return err
	}
}

func noAddress(vsw *cloud.VSwitch) *api.Error {
	return api.BadRequest("InvalidVSwitchId.IpNotEnough", "The vSwitch %s has not enough available IP addresses.", vsw.ID)
}

func dryRun() *api.Error {
	return api.BadRequest("DryRunOperation", "Request validation has been passed with DryRun flag set.")
}

func (e service) spec(c *api.Call) cloud.InstanceSpec {
	s := cloud.InstanceSpec{
		Name: c.Str("InstanceName"), HostName: c.Str("HostName"), Type: c.Str("InstanceType"), VSwitchID: c.Str("VSwitchId"),
		PrivateIP: c.Str("PrivateIpAddress"), RAMRole: c.Str("RamRoleName"), HTTPTokens: c.Str("HttpTokens"),
		HTTPEndpoint: c.Str("HttpEndpoint"), ImageID: c.Str("ImageId"), ChargeType: c.Str("InstanceChargeType"),
		SpotStrategy: c.Str("SpotStrategy"), SecurityGroups: []string{c.Str("SecurityGroupId")}, Tags: map[string]string{},
	}
	for _, o := range c.Objects("NetworkInterface") {
		s.SourceDestCheck = s.SourceDestCheck || o.Bool("SourceDestCheck", false)
	}
	for _, t := range cloud.TagsIn(c) {
		s.Tags[t.Key] = t.Value
	}
	return s
}

// instance finds the instance of a call.
func (e service) instance(c *api.Call) (*cloud.Instance, error) {
	i, ok := e.Instances.Get(c.Str("InstanceId"))
	if !ok {
		return nil, api.NotFound("InvalidInstanceId.NotFound", "The specified instance %s does not exist.", c.Str("InstanceId"))
	}
	return i, nil
}

func wrongStatus(i *cloud.Instance, status string) *api.Error {
	return api.Errorf(http.StatusForbidden, "IncorrectInstanceStatus",
		"The current status %s of the resource %s does not support this operation.", status, i.ID)
}

// change is the shared part of the calls that need an instance in one status: check, dry run, then do.
func (e service) change(c *api.Call, want string, do func(*cloud.Instance)) (any, error) {
	i, err := e.instance(c)
	if err != nil {
		return nil, err
	}
	if status := i.Status(c.Now); status != want {
		return nil, wrongStatus(i, status)
	}
	if c.Bool("DryRun", false) {
		return nil, dryRun()
	}
	do(i)
	return nil, nil //nolint:nilnil // an answer of the request id alone
}

func (e service) startInstance(c *api.Call) (any, error) {
	return e.change(c, cloud.Stopped, func(i *cloud.Instance) { i.Phase = e.Begin(cloud.Starting, cloud.Running, c.Now) })
}

func (e service) stopInstance(c *api.Call) (any, error) {
	return e.change(c, cloud.Running, func(i *cloud.Instance) { i.Phase = e.Begin(cloud.Stopping, cloud.Stopped, c.Now) })
}

// deleteInstance releases a stopped instance, or with Force any.
func (e service) deleteInstance(c *api.Call) (any, error) {
	i, err := e.instance(c)
	if err != nil {
		return nil, err
	}
	switch status := i.Status(c.Now); {
	case i.DeletionProtection:
		return nil, api.Forbidden("InvalidOperation.DeletionProtection", "The instance %s is protected from deletion.", i.ID)
	case status != cloud.Stopped && !c.Bool("Force", false):
		return nil, wrongStatus(i, status)
	case c.Bool("DryRun", false):
		return nil, dryRun()
	}
	e.RemoveInstance(i)
	return nil, nil //nolint:nilnil // an answer of the request id alone
}
