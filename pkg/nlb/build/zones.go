package build

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// NeedsZones reports whether the NLB of a Service is yet to be created, and neither the annotations nor the cloud-config name its zones.
func (in Input) NeedsZones() bool { return in.isNewWithoutZones() && in.Config.NLBZoneMaps == "" }

// isNewWithoutZones reports whether the NLB of a Service is yet to be created, and the annotations do not name its zones.
func (in Input) isNewWithoutZones() bool {
	return (in.Observed == nil || in.Observed.LoadBalancer.ID == "") &&
		!in.Params.Has(annotation.ZoneMaps) && !in.Params.Refused(annotation.ZoneMaps)
}

// DiscoverZones sets the zones of a new NLB that nothing names: the two with the most nodes that would be backends, in each of them the
// vSwitch with the most free addresses of those that have nodes. Where there are fewer than two it fails.
func (in *Input) DiscoverZones(vSwitches []alicloud.VSwitch) error {
	nodesIn := map[string]int{}
	best := map[string]alicloud.VSwitch{}
	used := map[string]bool{}
	for _, node := range in.Backends().Ready() {
		if vSwitch, ok := vSwitchOf(vSwitches, node.Address); ok {
			nodesIn[vSwitch.ZoneID]++
			used[vSwitch.ID] = true
		}
	}
	for _, vSwitch := range vSwitches {
		other, taken := best[vSwitch.ZoneID]
		if !used[vSwitch.ID] || vSwitch.AvailableIPs == 0 || in.dualStack() && vSwitch.IPv6CIDRBlock == "" ||
			taken && cmp.Or(cmp.Compare(vSwitch.AvailableIPs, other.AvailableIPs), strings.Compare(other.ID, vSwitch.ID)) <= 0 {
			continue
		}
		best[vSwitch.ZoneID] = vSwitch
	}
	for zone, vSwitch := range best {
		in.Zones = append(in.Zones, alicloud.NLBZone{ZoneID: zone, VSwitchID: vSwitch.ID})
	}
	slices.SortFunc(in.Zones, func(a, b alicloud.NLBZone) int {
		return cmp.Or(cmp.Compare(nodesIn[b.ZoneID], nodesIn[a.ZoneID]), strings.Compare(a.ZoneID, b.ZoneID))
	})
	if len(in.Zones) < minZones {
		return ErrNoZones(in.Zones)
	}
	in.Zones = in.Zones[:minZones]
	return nil
}

// ErrNoZones says that an NLB cannot be created because nobody names its zones, and the nodes are in these.
func ErrNoZones(of []alicloud.NLBZone) error {
	reason := "an NLB needs its zones and vSwitches, for example cn-hangzhou-a:vsw-1,cn-hangzhou-b:vsw-2"
	if len(of) > 0 {
		reason += "; the nodes are in " + ZonesText(of)
	}
	return &problem.ConfigError{Field: annotation.ZoneMaps.Key(), Reason: reason}
}

// vSwitchOf returns the vSwitch that has an address.
func vSwitchOf(vSwitches []alicloud.VSwitch, address string) (alicloud.VSwitch, bool) {
	addr, err := netip.ParseAddr(address)
	at := slices.IndexFunc(vSwitches, func(v alicloud.VSwitch) bool {
		return slices.ContainsFunc([]string{v.CIDRBlock, v.IPv6CIDRBlock}, func(block string) bool {
			prefix, err := netip.ParsePrefix(block)
			return err == nil && prefix.Contains(addr)
		})
	})
	if err != nil || at < 0 {
		return alicloud.VSwitch{}, false
	}
	return vSwitches[at], true
}

// ZonesText is the value of the annotation that names these zones.
func ZonesText(zones []alicloud.NLBZone) string {
	var texts []string
	for _, zone := range zones {
		texts = append(texts, zone.ZoneID+":"+zone.VSwitchID)
	}
	return strings.Join(texts, ",")
}
