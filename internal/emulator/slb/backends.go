package slb

import (
	"encoding/json"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

// wireBackend is one item of a BackendServers parameter. encoding/json matches its keys case-insensitively, which the
// cloud's clients need: the vendor's pages write upper camel case, the official CCM lower. Unknown keys are ignored.
type wireBackend struct {
	ServerID    string  `json:"serverId"`
	ServerIP    string  `json:"serverIp"`
	Type        string  `json:"type"`
	Port        number  `json:"port"`
	Weight      *number `json:"weight"`
	Description string  `json:"description"`
}

// number accepts 80 and "80".
type number int

// UnmarshalJSON reads a number or a quoted one.
func (n *number) UnmarshalJSON(data []byte) error {
	v, err := strconv.Atoi(strings.Trim(string(data), `"`))
	*n = number(v)
	return err
}

const (
	defaultWeight = 100
	maxWeight     = 100
)

// parseBackends reads and checks the backend servers in a parameter, without looking at any state but the limits.
func (s service) parseBackends(c *api.Call, param string) ([]cloud.Backend, *api.Error) {
	var wire []wireBackend
	text := c.Str(param)
	if strings.Contains(text, `"ServerId"`) && !c.Holds("slb.keys-any-case") {
		text = strings.ReplaceAll(text, `"ServerId"`, `"-"`)
	}
	if err := json.Unmarshal([]byte(text), &wire); err != nil {
		return nil, api.Invalid(param, "not an array of backend servers")
	}
	if len(wire) > s.Limits.BackendsPerCall {
		return nil, api.BadRequest("TooManyBackendServers",
			"The number of backend servers in one call exceeds max supported number: %d", s.Limits.BackendsPerCall)
	}
	if len(wire) > published.BackendsPerCall {
		c.Holds("slb.servers-per-call-40")
	}
	backends := make([]cloud.Backend, 0, len(wire))
	for _, w := range wire {
		if w.Weight == nil && !c.Holds("slb.default-weight") {
			w.Weight = new(number)
		}
		b, bad := w.backend(param)
		if bad == nil {
			bad = s.checkDescription(c, param, b.Description)
		}
		if bad != nil {
			return nil, bad
		}
		backends = append(backends, b)
	}
	return backends, nil
}

func (s service) checkDescription(c *api.Call, param, description string) *api.Error {
	length := utf8.RuneCountInString(description)
	if length > s.Limits.NameCharacters {
		return api.Invalid(param, "the length %d of a description is outside 0-%d", length, s.Limits.NameCharacters)
	}
	if length > published.NameCharacters {
		c.Holds("slb.long-descriptions")
	}
	return nil
}

// published are the limits of the vendor's pages; clients in production exceed some of them.
var published = cloud.Published()

func (w wireBackend) backend(param string) (cloud.Backend, *api.Error) {
	b := cloud.Backend{
		ServerID: w.ServerID, ServerIP: w.ServerIP, Type: strings.ToLower(cloud.OrDefault(w.Type, "ecs")),
		Port: int(w.Port), Weight: defaultWeight, Description: w.Description,
	}
	if w.Weight != nil {
		b.Weight = int(*w.Weight)
	}
	switch {
	case b.ServerID == "":
		return b, api.Missing(param + ".ServerId")
	case b.Port < 1 || b.Port > 65535:
		return b, api.Invalid(param, "the port %d is outside 1-65535", b.Port)
	case b.Weight < 0 || b.Weight > maxWeight:
		return b, api.Invalid(param, "the weight %d is outside 0-%d", b.Weight, maxWeight)
	case b.Type != "ecs" && b.Type != "eni" && b.Type != "eci":
		return b, api.Invalid(param, "%q is none of the types ecs, eni, eci", b.Type)
	}
	if b.ServerIP != "" {
		if _, err := netip.ParseAddr(b.ServerIP); err != nil {
			return b, api.Invalid(param, "%q is not an address", b.ServerIP)
		}
	}
	return b, nil
}

// admit adds backend servers to a group after checking each server and the quotas. A backend server that is there already stays as it is.
// Nothing is added when one is refused.
func (s service) admit(lb *cloud.LoadBalancer, g *cloud.ServerGroup, backends []cloud.Backend, c *api.Call) *api.Error {
	merged := slices.Clone(g.Backends)
	for _, b := range backends {
		if bad := s.resolve(lb, &b, c); bad != nil {
			return bad
		}
		if indexOf(merged, b) < 0 {
			merged = append(merged, b)
		}
	}
	added := len(merged) - len(g.Backends)
	if s.BackendCount(lb)-groupSize(s, g)+len(g.Backends)+added > s.Limits.BackendsPerLB {
		return api.BadRequest("InstanceBackendServerNumberOverLimit",
			"The backend server number has reached to the quota limit of this load balancers.")
	}
	if len(merged) > published.BackendsPerLB {
		c.Holds("slb.group-servers-without-quota")
	}
	if most := s.Limits.BackendsPerGroup; most > 0 && len(merged) > most {
		return api.BadRequest("InstanceBackendServerNumberOverLimit", "The backend server number has reached to the quota limit of this group.")
	}
	s.SetBackends(g, merged)
	return nil
}

// groupSize is what BackendCount counts for a group: nothing before it is registered.
func groupSize(s service, g *cloud.ServerGroup) int {
	if _, ok := s.ServerGroups.Get(g.ID); ok {
		return len(g.Backends)
	}
	return 0
}

// resolve checks that a server exists, runs and is in the load balancer's network, and fills in its address.
func (s service) resolve(lb *cloud.LoadBalancer, b *cloud.Backend, c *api.Call) *api.Error {
	switch b.Type {
	case "eni":
		return s.resolveInterface(lb, b)
	case "eci":
		if b.ServerIP == "" {
			return api.NotFound("ResourceNotFound.vServers", "The container instance %s needs its address.", b.ServerID)
		}
		return nil
	}
	i, ok := s.Instances.Get(b.ServerID)
	switch {
	case !ok:
		return api.BadRequest("InvalidServerId.NotExist", "The specified server %s does not exist.", b.ServerID)
	case lb.VPCID != "" && i.VPCID != lb.VPCID:
		return s.otherVPC("server", b.ServerID)
	case i.Status(c.Now) != cloud.Running:
		return api.BadRequest("ObtainIpFail", "The server %s is %s.", b.ServerID, i.Status(c.Now))
	}
	if n := s.AttachedTo(b.ServerID, lb.ID); n >= s.Limits.LBsPerInstance {
		code := cloud.OrDefault(s.AttachedQuotaCode, "QuotaExceeded.AttachedLoadBalancers")
		return api.BadRequest(code, "The server %s is behind %d load balancers, which is its quota.", b.ServerID, n)
	}
	b.ServerIP = i.PrivateIP
	return nil
}

func (s service) otherVPC(what, id string) *api.Error {
	return api.BadRequest(cloud.OrDefault(s.OtherVPCCode, "NetworkConflict"), "The %s %s is not in the VPC of the load balancer.", what, id)
}

func (s service) resolveInterface(lb *cloud.LoadBalancer, b *cloud.Backend) *api.Error {
	eni, ok := s.Interfaces.Get(b.ServerID)
	switch {
	case !ok:
		return api.NotFound("ResourceNotFound.vServers", "The specified network interface %s does not exist.", b.ServerID)
	case lb.VPCID != "" && eni.VPCID != lb.VPCID:
		return s.otherVPC("network interface", b.ServerID)
	case b.ServerIP == "":
		b.ServerIP = eni.PrimaryIP
	case slices.Contains(eni.IPv6s, b.ServerIP) && lb.IPVersion != "ipv6":
		return api.Invalid("BackendServers", "the address %s is IPv6, the load balancer is of %s", b.ServerIP, lb.IPVersion)
	case !slices.Contains(eni.PrivateIPs, b.ServerIP) && !slices.Contains(eni.IPv6s, b.ServerIP):
		return api.BadRequest("InvalidBackendServers.ServerIpConflict", "The address %s is not one of %s.", b.ServerIP, eni.ID)
	}
	return nil
}

func (s service) evict(g *cloud.ServerGroup, backends []cloud.Backend) {
	s.SetBackends(g, slices.DeleteFunc(slices.Clone(g.Backends), func(have cloud.Backend) bool {
		return slices.ContainsFunc(backends, func(b cloud.Backend) bool { return names(b, have) })
	}))
}

// names reports whether a request's item means a backend server. An item without address means the backend server of that server and
// port, whatever its address.
func names(b, have cloud.Backend) bool {
	return b.ServerID == have.ServerID && b.Port == have.Port && (b.ServerIP == "" || have.ServerIP == "" || b.ServerIP == have.ServerIP)
}

func indexOf(backends []cloud.Backend, b cloud.Backend) int {
	return slices.IndexFunc(backends, func(have cloud.Backend) bool { return names(b, have) })
}
