package ecs

import (
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

// State describes every instance, interface and security group for the admin API. loopback maps an address to this host's. The caller
// holds the store's lock.
func State(s *cloud.Store, now time.Time, loopback func(string) string) api.Object {
	type located struct {
		instance
		RamRoleName     string
		LoopbackAddress string
	}
	e, c := service{s}, &api.Call{Now: now}
	instances, interfaces := []located{}, []networkInterface{}
	for i := range s.Instances.All() {
		instances = append(instances, located{e.view(i, c), i.RAMRole, loopback(i.PrivateIP)})
	}
	for eni := range s.Interfaces.All() {
		interfaces = append(interfaces, interfaceView(eni))
	}
	type securityGroup struct {
		securityGroupView
		Permissions []ruleView
	}
	groups := []securityGroup{}
	for g := range s.SecurityGroups.All() {
		groups = append(groups, securityGroup{viewOfSecurityGroup(g), viewsOfRules(g)})
	}
	return api.Object{
		{Name: "instances", Value: instances}, {Name: "networkInterfaces", Value: interfaces}, {Name: "securityGroups", Value: groups},
	}
}
