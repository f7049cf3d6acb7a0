package build_test

import (
	"strings"
	"testing"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/model"
)

// TestZonesOfTheCloudConfig: a new load balancer of a Service without the annotation is in the zones of the cloud-config. One that is there
// stays where it is.
func TestZonesOfTheCloudConfig(t *testing.T) {
	t.Parallel()
	configured := func(f *fixture) { f.config.NLBZoneMaps = "z-a:vsw-a,z-b:vsw-b" }
	zones := func(m *model.Model) []string {
		var found []string
		for _, zone := range m.LoadBalancer.Zones {
			found = append(found, zone.ZoneID+":"+zone.VSwitchID)
		}
		for _, zone := range m.Want.Zones {
			found = append(found, "change to "+zone.ZoneID)
		}
		return []string{strings.Join(found, " ")}
	}
	checkRows(t, zones, []row{
		{"new", configured, []string{"z-a:vsw-a z-b:vsw-b"}, nil},
		{"new, with the annotation", all(configured, set("zone-maps", "z-c:vsw-c,z-d:vsw-d")), []string{"z-c:vsw-c z-d:vsw-d"}, nil},
		{"there", all(configured, existing()), []string{""}, nil},
	})
}
