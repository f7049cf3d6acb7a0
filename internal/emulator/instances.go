package emulator

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

// Instance is a copy of an ECS instance.
type Instance struct {
	ID, Name, HostName, Status    string
	RegionID, ZoneID              string
	VPCID, VSwitchID              string
	PrivateIP, NetworkInterfaceID string
	InstanceType, RAMRole         string
	Tags                          map[string]string
	Created                       time.Time
}

// InstanceSpec describes an instance to put; empty fields get defaults, or stay as they are on an instance that exists.
type InstanceSpec = cloud.InstanceSpec

// ErrFixed means that the zone, vSwitch or address of an existing instance cannot be changed.
var ErrFixed = errors.New("an existing instance keeps its zone, vSwitch and address")

// Instances returns copies of all instances, in the order of creation.
func (e *Emulator) Instances() []Instance {
	var all []Instance
	e.store.View(func() {
		now := e.store.Now()
		for i := range e.store.Instances.All() {
			all = append(all, e.copyInstance(i, now))
		}
	})
	return all
}

func (e *Emulator) copyInstance(i *cloud.Instance, now time.Time) Instance {
	c := Instance{
		ID: i.ID, Name: i.Name, HostName: i.HostName, Status: i.Status(now), RegionID: e.store.Region, ZoneID: i.ZoneID,
		VPCID: i.VPCID, VSwitchID: i.VSwitchID, PrivateIP: i.PrivateIP, NetworkInterfaceID: i.PrimaryInterface.ID,
		InstanceType: i.Type, RAMRole: i.RAMRole, Tags: map[string]string{}, Created: i.Created,
	}
	for _, t := range i.Tags {
		c.Tags[t.Key] = t.Value
	}
	return c
}

// PutInstance creates the instance with the given id (an empty id gets a fresh one), or changes the one that has it. By
// default it is Running at once, in the first vSwitch.
func (e *Emulator) PutInstance(id string, spec InstanceSpec) (Instance, error) {
	if err := checkStatus(spec.Status); err != nil {
		return Instance{}, err
	}
	var out Instance
	var err error
	e.store.Update(func() {
		i, exists := e.store.Instances.Get(id)
		if exists {
			if err = e.store.CheckRole(spec.RAMRole); err == nil {
				err = changeInstance(i, spec)
			}
		} else {
			i, err = e.store.AddInstance(id, spec, cloud.Steady(cloud.OrDefault(spec.Status, cloud.Running)))
		}
		if err == nil {
			out = e.copyInstance(i, e.store.Now())
		}
	})
	e.fabric.Sync()
	return out, err
}

func checkStatus(status string) error {
	known := []string{"", cloud.Pending, cloud.Starting, cloud.Running, cloud.Stopping, cloud.Stopped}
	if !slices.Contains(known, status) {
		return fmt.Errorf("instance status %q: known are %v", status, known[1:])
	}
	return nil
}

func changeInstance(i *cloud.Instance, spec InstanceSpec) error {
	moved := (spec.ZoneID != "" && spec.ZoneID != i.ZoneID) || (spec.VSwitchID != "" && spec.VSwitchID != i.VSwitchID) ||
		(spec.PrivateIP != "" && spec.PrivateIP != i.PrivateIP)
	if moved {
		return fmt.Errorf("change instance %s: %w", i.ID, ErrFixed)
	}
	for field, value := range map[*string]string{
		&i.Name: spec.Name, &i.HostName: spec.HostName, &i.Type: spec.Type, &i.RAMRole: spec.RAMRole,
		&i.HTTPTokens: spec.HTTPTokens, &i.HTTPEndpoint: spec.HTTPEndpoint,
	} {
		if value != "" {
			*field = value
		}
	}
	if spec.Status != "" {
		i.Phase = cloud.Steady(spec.Status)
	}
	if spec.Tags != nil {
		i.Tags = cloud.TagsOf(spec.Tags)
	}
	return nil
}

// ReleaseInstance removes an instance at once and reports whether it was there.
func (e *Emulator) ReleaseInstance(id string) bool {
	existed := false
	e.store.Update(func() {
		var i *cloud.Instance
		if i, existed = e.store.Instances.Get(id); existed {
			e.store.RemoveInstance(i)
		}
	})
	e.fabric.Sync()
	return existed
}
