package cloud

import (
	"errors"
	"fmt"
	"net/netip"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

// problems collects what is wrong with a configuration, so that one start reports all of it.
type problems struct{ errs []error }

func (p *problems) add(field, value, accepted string) {
	p.errs = append(p.errs, fmt.Errorf("%s: %q, accepted: %s", field, value, accepted))
}

// oneOf checks a field whose values are known; "" is the default.
func (p *problems) oneOf(field, value string, known ...string) {
	if value != "" && !slices.Contains(known, value) {
		p.add(field, value, strings.Join(known, ", "))
	}
}

// ids checks that the ids of a list are there and differ. A second resource of an id would hide the first one.
func (p *problems) ids(list, field string, ids []string) {
	seen := map[string]bool{}
	for i, id := range ids {
		at := fmt.Sprintf("%s[%d].%s", list, i, field)
		switch {
		case id == "":
			p.add(at, id, "an ID")
		case seen[id]:
			p.add(at, id, "an ID that no other of "+list+" has")
		}
		seen[id] = true
	}
}

func fieldsOf[T any](all []T, field func(T) string) []string {
	ids := make([]string, len(all))
	for i, v := range all {
		ids[i] = field(v)
	}
	return ids
}

var (
	regionForm = regexp.MustCompile(`^[a-z]+(-[a-z0-9]+)+$`)
	// accountForm is more than the cloud's 16 digits, but nothing that would break ARNs and paths.
	accountForm = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
)

// Validate reports everything that is wrong with the configuration by itself, with field, value and what is accepted. Whether resources fit
// together is seen when they are made.
func (c *Config) Validate() error {
	p := &problems{}
	if !regionForm.MatchString(c.Region) {
		p.add("region", c.Region, "the ID of a region such as cn-hangzhou")
	}
	if c.AccountID != "" && !accountForm.MatchString(c.AccountID) {
		p.add("accountId", c.AccountID, "up to 64 letters, digits, - and _")
	}
	p.oneOf("preset", c.Preset, "published", "observed")
	p.check(c.Quotas)
	p.networks(c)
	p.instances(c)
	p.identities(c)
	p.others(c)
	if err := c.Check(); err != nil {
		p.errs = append(p.errs, err)
	}
	return errors.Join(p.errs...)
}

// check reports negative quotas.
func (p *problems) check(l Limits) {
	v := reflect.ValueOf(l)
	for i := range v.NumField() {
		if n := v.Field(i).Int(); n < 0 {
			name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
			p.add("quotas."+name, fmt.Sprint(n), "a number from 0")
		}
	}
}

// Check reports quotas that cannot be.
func (l Limits) Check() error {
	p := &problems{}
	p.check(l)
	return errors.Join(p.errs...)
}

func (p *problems) networks(c *Config) {
	p.ids("vpcs", "id", fieldsOf(c.VPCs, func(v VPCConfig) string { return v.ID }))
	ranges := map[string]netip.Prefix{}
	for i, v := range c.VPCs {
		ranges[v.ID] = p.ipv4(fmt.Sprintf("vpcs[%d].cidr", i), v.CIDR)
	}
	p.ids("routeTables", "id", fieldsOf(c.RouteTables, func(t RouteTableConfig) string { return t.ID }))
	ofTable := map[string]string{}
	for i, t := range c.RouteTables {
		p.known(fmt.Sprintf("routeTables[%d].vpcId", i), t.VPCID, ranges)
		ofTable[t.ID] = t.VPCID
	}
	p.vSwitches(c, ranges, ofTable)
}

// vSwitches checks them against the ranges of the VPCs, and the VPCs of the route tables.
func (p *problems) vSwitches(c *Config, ranges map[string]netip.Prefix, ofTable map[string]string) {
	p.ids("vSwitches", "id", fieldsOf(c.VSwitches, func(v VSwitchConfig) string { return v.ID }))
	for i, v := range c.VSwitches {
		at := fmt.Sprintf("vSwitches[%d].", i)
		p.known(at+"vpcId", v.VPCID, ranges)
		if !strings.HasPrefix(v.Zone, c.Region) || v.Zone == c.Region {
			p.add(at+"zoneId", v.Zone, "a zone of the region such as "+c.Region+"-a")
		}
		outer, inner := ranges[v.VPCID], p.ipv4(at+"cidr", v.CIDR)
		if outer.IsValid() && inner.IsValid() && (!outer.Contains(inner.Addr()) || outer.Bits() > inner.Bits()) {
			p.add(at+"cidr", v.CIDR, "a block inside "+outer.String()+" of its VPC")
		}
		if v.RouteTableID != "" && (ofTable[v.RouteTableID] == "" || ofTable[v.RouteTableID] != v.VPCID) {
			p.add(at+"routeTableId", v.RouteTableID, "a route table of its VPC")
		}
	}
}

// ipv4 reads a block of IPv4 addresses.
func (p *problems) ipv4(field, text string) netip.Prefix {
	prefix, err := netip.ParsePrefix(text)
	if err != nil || !prefix.Addr().Is4() || prefix != prefix.Masked() {
		p.add(field, text, "an IPv4 block such as 192.168.0.0/16, with no bit set after its prefix")
		return netip.Prefix{}
	}
	return prefix
}

func (p *problems) known(field, id string, vpcs map[string]netip.Prefix) {
	if _, ok := vpcs[id]; !ok {
		p.add(field, id, "the ID of one of vpcs")
	}
}

func (p *problems) instances(c *Config) {
	p.ids("instances", "id", fieldsOf(c.Instances, func(v InstanceConfig) string { return v.ID }))
	for i, v := range c.Instances {
		at := fmt.Sprintf("instances[%d].", i)
		p.oneOf(at+"status", v.Status, Pending, Starting, Running, Stopping, Stopped)
		p.oneOf(at+"httpTokens", v.HTTPTokens, "optional", "required")
		p.oneOf(at+"httpEndpoint", v.HTTPEndpoint, "enabled", "disabled")
	}
}

func (p *problems) identities(c *Config) {
	p.ids("accessKeys", "id", fieldsOf(c.AccessKeys, func(k AccessKeyConfig) string { return k.ID }))
	for i, k := range c.AccessKeys {
		at := fmt.Sprintf("accessKeys[%d].", i)
		if k.Secret == "" {
			p.add(at+"secret", "", "the secret of the access key")
		}
		p.permissions(at+"permissions", k.Permissions)
	}
	providers := fieldsOf(c.OIDCProviders, func(o OIDCConfig) string { return o.Name })
	p.ids("oidcProviders", "name", providers)
	for i, o := range c.OIDCProviders {
		if len(o.ClientIDs) == 0 {
			p.add(fmt.Sprintf("oidcProviders[%d].clientIds", i), "", "at least one audience of tokens")
		}
	}
	p.ids("roles", "name", roleNames(c.Roles))
	for i, r := range c.Roles {
		at := fmt.Sprintf("roles[%d].", i)
		p.permissions(at+"permissions", r.Permissions)
		if r.MaxSession != 0 && (r.MaxSession < minMaxSession || r.MaxSession > maxMaxSession) {
			p.add(at+"maxSessionDuration", fmt.Sprint(r.MaxSession), fmt.Sprintf("%d to %d seconds", minMaxSession, maxMaxSession))
		}
		for n, name := range r.OIDCProviders {
			if !slices.Contains(providers, name) {
				p.add(fmt.Sprintf("%soidcProviders[%d]", at, n), name, "the name of one of oidcProviders")
			}
		}
	}
}

// MaxSessionDuration of a role in seconds. The cloud accepts 3600 and more; less than the shortest session would refuse every session.
const (
	minMaxSession = 900
	maxMaxSession = 43200
)

func (p *problems) permissions(field string, patterns []string) {
	if err := CheckPermissions(patterns); err != nil {
		p.errs = append(p.errs, fmt.Errorf("%s%w", field, err))
	}
}

// CheckPermissions reports a pattern that no action could match.
func CheckPermissions(patterns []string) error {
	for i, pattern := range patterns {
		product, action, ok := strings.Cut(pattern, ":")
		_, err := path.Match(pattern, "")
		if pattern != "*" && (!ok || product == "" || action == "" || err != nil) {
			return fmt.Errorf("[%d]: %q, accepted: *, or product and action such as slb:* or ecs:Describe*", i, pattern)
		}
	}
	return nil
}

// Statuses of answers that are errors.
const minErrorStatus, maxErrorStatus = 400, 599

func (p *problems) others(c *Config) {
	p.ids("certificates", "id", fieldsOf(c.Certificates, func(v CertificateConfig) string { return v.ID }))
	for i, v := range c.Certificates {
		if v.Certificate == "" && v.PrivateKey != "" {
			p.add(fmt.Sprintf("certificates[%d].certificate", i), "", "the PEM text of the certificate that belongs to privateKey")
		}
	}
	p.ids("acls", "id", fieldsOf(c.ACLs, func(a ACLConfig) string { return a.ID }))
	for i, a := range c.ACLs {
		p.oneOf(fmt.Sprintf("acls[%d].ipVersion", i), a.IPVersion, "ipv4", "ipv6")
		for n, entry := range a.Entries {
			prefix, err := netip.ParsePrefix(entry)
			if ipv6 := a.IPVersion == "ipv6"; err != nil || prefix.Addr().Is6() != ipv6 {
				p.add(fmt.Sprintf("acls[%d].entries[%d]", i, n), entry, "a block of "+OrDefault(a.IPVersion, "ipv4")+" addresses")
			}
		}
	}
	for field, status := range map[string]int{
		"statuses.invalidAccessKeyIdNotFound": c.Statuses.InvalidAccessKey, "statuses.signatureDoesNotMatch": c.Statuses.SignatureMismatch,
	} {
		if status != 0 && (status < minErrorStatus || status > maxErrorStatus) {
			p.add(field, fmt.Sprint(status), fmt.Sprintf("%d to %d", minErrorStatus, maxErrorStatus))
		}
	}
}
