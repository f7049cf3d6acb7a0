package metadata

import (
	"maps"
	"slices"
	"strings"
)

// facts are what one instance can read about itself.
type facts struct {
	values           map[string]string
	role             string
	tokens, endpoint string
}

func (s *Service) facts(id string) (facts, bool) {
	var f facts
	found := false
	s.store.View(func() {
		i, ok := s.store.Instances.Get(id)
		if !ok {
			return
		}
		found = true
		f = facts{role: i.RAMRole, tokens: i.HTTPTokens, endpoint: i.HTTPEndpoint}
		values := map[string]string{
			"instance-id": i.ID, "region-id": s.store.Region, "zone-id": i.ZoneID, "vpc-id": i.VPCID, "vswitch-id": i.VSwitchID,
			"private-ipv4": i.PrivateIP, "hostname": i.HostName, "image-id": i.ImageID, "serial-number": i.ID,
			"network-type": "vpc", "owner-account-id": s.store.AccountID, "instance/instance-type": i.Type,
			"instance/instance-name": i.Name,
		}
		if eip, ok := s.store.EIPOf(id, s.store.Now()); ok {
			values["eipv4"] = eip.Address
		}
		if vpc, ok := s.store.VPCs.Get(i.VPCID); ok {
			values["vpc-cidr-block"] = vpc.CIDR
		}
		if vsw, ok := s.store.VSwitches.Get(i.VSwitchID); ok {
			values["vswitch-cidr-block"] = vsw.Prefix.String()
		}
		for _, eni := range s.store.InterfacesOf(id) {
			base := "network/interfaces/macs/" + eni.MAC + "/"
			values[base+"network-interface-id"] = eni.ID
			values[base+"primary-ip-address"] = eni.PrimaryIP
			values[base+"private-ipv4s"] = `["` + strings.Join(eni.PrivateIPs, `","`) + `"]`
			values[base+"vpc-cidr-block"] = values["vpc-cidr-block"]
			values[base+"vswitch-id"] = eni.VSwitchID
			if eni.Type == "Primary" {
				values["mac"] = eni.MAC
			}
		}
		if i.RAMRole != "" {
			values["ram/security-credentials/"+i.RAMRole] = ""
		}
		f.values = values
	})
	return f, found
}

// lookup returns a value, or the listing of a directory: its names, one per line, directories with a slash.
func (f facts) lookup(path string) (string, bool) {
	if path == "" {
		return "meta-data/", true
	}
	key, ok := strings.CutPrefix(path, "meta-data")
	key = strings.TrimPrefix(key, "/")
	if !ok {
		return "", false
	}
	if v := f.values[key]; v != "" {
		return v, true
	}
	dir := strings.TrimSuffix(key, "/")
	if dir != "" {
		dir += "/"
	}
	names := map[string]bool{}
	for k, v := range f.values {
		rest, below := strings.CutPrefix(k, dir)
		if !below || (v == "" && !strings.HasPrefix(k, "ram/")) {
			continue
		}
		name, _, deeper := strings.Cut(rest, "/")
		if deeper {
			name += "/"
		}
		names[name] = true
	}
	if len(names) == 0 {
		return "", false
	}
	return strings.Join(slices.Sorted(maps.Keys(names)), "\n"), true
}
