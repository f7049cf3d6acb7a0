package ecs

import "github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"

type region struct{ RegionId, LocalName, RegionEndpoint, Status string } //nolint:revive // names on the wire

func (e service) describeRegions(*api.Call) (any, error) {
	var answer struct{ Regions struct{ Region []region } }
	answer.Regions.Region = []region{{e.Region, e.Region, "ecs." + e.Region + ".aliyuncs.com", "available"}}
	return answer, nil
}

type zone struct { //nolint:revive // names on the wire
	ZoneId, LocalName, ZoneType string
	AvailableInstanceTypes      struct{ InstanceTypes []string }
	AvailableResourceCreation   struct{ ResourceTypes []string }
}

// describeZones answers the zones that have a vSwitch.
func (e service) describeZones(*api.Call) (any, error) {
	var answer struct{ Zones struct{ Zone []zone } }
	answer.Zones.Zone = []zone{}
	for _, id := range e.Zones() {
		z := zone{ZoneId: id, LocalName: id, ZoneType: "AvailabilityZone"}
		z.AvailableInstanceTypes.InstanceTypes = []string{"ecs.g7.large", "ecs.c7.large", "ecs.c7.xlarge"}
		z.AvailableResourceCreation.ResourceTypes = []string{"VSwitch", "Instance", "Disk", "IoOptimized"}
		answer.Zones.Zone = append(answer.Zones.Zone, z)
	}
	return answer, nil
}
