package diff

import (
	"fmt"
	"slices"
	"strings"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// differs reports whether a setting is to be another one; nil leaves it.
func differs[T comparable](want, have *T) bool {
	return want != nil && (have == nil || *want != *have)
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

func zonesText(zones []alicloud.NLBZone) string {
	names := make([]string, 0, len(zones))
	for _, zone := range zones {
		names = append(names, zone.ZoneID+":"+zone.VSwitchID)
	}
	return strings.Join(names, ",")
}

// changes collects the settings that differ, for people.
type changes struct{ before, after []string }

func changedValue[T comparable](c *changes, name string, want, have *T) *T {
	if !differs(want, have) {
		return nil
	}
	c.noteChange(name, have, want)
	return want
}

// changeFolded compares without letter case, in which the API is not consistent.
func changeFolded(c *changes, name string, want, have *string) *string {
	if want != nil && have != nil && strings.EqualFold(*want, *have) {
		return nil
	}
	return changedValue(c, name, want, have)
}

func changeList(c *changes, name string, want, have []string) []string {
	if len(want) == 0 || sameSet(want, have) {
		return nil
	}
	c.before, c.after = append(c.before, name+"="+strings.Join(have, ",")), append(c.after, name+"="+strings.Join(want, ","))
	return want
}

func (c *changes) noteChange(name string, have, want any) {
	text := func(value any) string {
		switch v := value.(type) {
		case *string:
			if v != nil {
				return *v
			}
		case *int:
			if v != nil {
				return fmt.Sprint(*v)
			}
		case *bool:
			if v != nil {
				return onOff(*v)
			}
		case *alicloud.ProxyProtocolV2:
			if v != nil {
				return fmt.Sprintf("%+v", *v)
			}
		}
		return ""
	}
	c.before, c.after = append(c.before, name+"="+text(have)), append(c.after, name+"="+text(want))
}

func (c *changes) anyChanges() bool { return len(c.after) > 0 }

func sameSet(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// groupChanges returns the settings of a group that differ. What a check is made of counts while it is on.
func groupChanges(want, have *alicloud.NLBGroupSettings) (alicloud.NLBGroupSettings, *changes) {
	c := &changes{}
	w, h := &want.HealthCheck, &have.HealthCheck
	changed := alicloud.NLBGroupSettings{
		Scheduler:        changeFolded(c, "scheduler", want.Scheduler, have.Scheduler),
		ConnectionDrain:  changedValue(c, "drain", want.ConnectionDrain, have.ConnectionDrain),
		DrainTimeout:     changedValue(c, "drainTimeout", want.DrainTimeout, have.DrainTimeout),
		PreserveClientIP: changedValue(c, "preserveClientIP", want.PreserveClientIP, have.PreserveClientIP),
		HealthCheck: alicloud.NLBHealthCheck{
			Enabled: changedValue(c, "healthCheck", w.Enabled, h.Enabled), Type: changeFolded(c, "checkType", w.Type, h.Type),
			ConnectPort:    changedValue(c, "checkPort", w.ConnectPort, h.ConnectPort),
			ConnectTimeout: changedValue(c, "checkTimeout", w.ConnectTimeout, h.ConnectTimeout),
			Interval:       changedValue(c, "checkInterval", w.Interval, h.Interval),
			Healthy:        changedValue(c, "healthy", w.Healthy, h.Healthy), Unhealthy: changedValue(c, "unhealthy", w.Unhealthy, h.Unhealthy),
			Domain: changedValue(c, "checkDomain", w.Domain, h.Domain), URL: changedValue(c, "checkURI", w.URL, h.URL),
			Method:  changeFolded(c, "checkMethod", w.Method, h.Method),
			Version: changedValue(c, "checkVersion", w.Version, h.Version), Codes: changeList(c, "checkCodes", w.Codes, h.Codes),
		},
	}
	if changed.DrainTimeout != nil && changed.ConnectionDrain == nil {
		changed.ConnectionDrain = want.ConnectionDrain
	}
	return changed, c
}

// listenerChanges returns the settings of a listener that differ, but for its group.
func listenerChanges(want, have *alicloud.NLBListenerSettings) (alicloud.NLBListenerSettings, *changes) {
	c := &changes{}
	return alicloud.NLBListenerSettings{
		Description:      changedValue(c, "mark", want.Description, have.Description),
		IdleTimeout:      changedValue(c, "idleTimeout", want.IdleTimeout, have.IdleTimeout),
		Cps:              changedValue(c, "cps", want.Cps, have.Cps),
		ProxyProtocol:    changedValue(c, "proxyProtocol", want.ProxyProtocol, have.ProxyProtocol),
		ProxyProtocolV2:  changedValue(c, "ppv2", want.ProxyProtocolV2, have.ProxyProtocolV2),
		SecurityPolicyID: changedValue(c, "policy", want.SecurityPolicyID, have.SecurityPolicyID),
		CertificateIDs:   changeList(c, "certificates", want.CertificateIDs, have.CertificateIDs),
		CACertificateIDs: changeList(c, "ca", want.CACertificateIDs, have.CACertificateIDs),
		CAEnabled:        changedValue(c, "caEnabled", want.CAEnabled, have.CAEnabled),
		ALPNEnabled:      changedValue(c, "alpn", want.ALPNEnabled, have.ALPNEnabled),
		ALPNPolicy:       changedValue(c, "alpnPolicy", want.ALPNPolicy, have.ALPNPolicy),
	}, c
}
