package slb

import (
	"slices"
	"strings"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// usualExtensions is the quota of domain extensions of a listener that nobody has raised.
// Source: https://www.alibabacloud.com/help/en/slb/classic-load-balancer/developer-reference/api-slb-2014-05-15-createdomainextension.
const usualExtensions = 3

// extensions makes the steps on the domain extensions of a listener; have is nil for a listener that the plan creates.
// Extensions that the annotation never named stay. New ones come before old ones go, unless there is no room for both.
func (d *differ) extensions(want, have *Listener) {
	var present, added, gone []alicloud.DomainExtension
	if have != nil {
		present = have.Extensions
	}
	for _, extension := range want.Extensions {
		i := indexOfDomain(present, extension.Domain)
		switch {
		case i < 0:
			added = append(added, extension)
		case present[i].CertificateID != extension.CertificateID:
			extension.ID = present[i].ID
			d.extensionStep(OpSetExtension, want, extension, present[i].CertificateID, extension.CertificateID)
		}
	}
	for _, extension := range present {
		if indexOfDomain(want.Extensions, extension.Domain) < 0 && d.desired.Domains.wrote(extension.Domain) {
			gone = append(gone, extension)
		}
	}
	if len(present)+len(added) <= usualExtensions {
		d.createExtensions(want, added)
		added = nil
	}
	for _, extension := range gone {
		d.extensionStep(OpDeleteExtension, want, extension, extension.CertificateID, "")
	}
	d.createExtensions(want, added)
}

func (d *differ) createExtensions(listener *Listener, extensions []alicloud.DomainExtension) {
	for _, extension := range extensions {
		d.extensionStep(OpCreateExtension, listener, extension, "", extension.CertificateID)
	}
}

func (d *differ) extensionStep(op Op, listener *Listener, extension alicloud.DomainExtension, before, after string) {
	key := listener.ListenerKey
	d.step(Step{
		Op: op, Target: targetListener(key) + " " + extension.Domain, Before: before, After: after,
		needs: []string{targetListener(key), targetDomains}, listener: alicloud.Listener{ListenerKey: key}, extension: extension,
	})
}

func indexOfDomain(extensions []alicloud.DomainExtension, domain string) int {
	return slices.IndexFunc(extensions, func(e alicloud.DomainExtension) bool { return strings.EqualFold(e.Domain, domain) })
}

// rememberDomains notes domains before their extensions are made: after a crash in between, a domain too many is
// remembered, and none too few.
func (d *differ) rememberDomains() {
	d.noted, _ = d.actual.LoadBalancer.Tag(tagDomains)
	noted := splitDigests(d.noted)
	missing := slices.ContainsFunc(d.desired.Domains.now, func(digest string) bool { return !slices.Contains(noted, digest) })
	if missing && d.keepsDomains() {
		d.noteDomains(d.desired.Domains.all())
	}
}

// forgetDomains leaves only the domains that are wanted in the note, once the extensions of the others are gone.
func (d *differ) forgetDomains() {
	if d.keepsDomains() {
		d.noteDomains(d.desired.Domains.now)
	}
}

// keepsDomains: an adopted CLB gets the note with the first extension that is made on it.
func (d *differ) keepsDomains() bool {
	if d.desired.Domains.keep || d.desired.Reused {
		return d.desired.Domains.keep
	}
	return slices.ContainsFunc(d.desired.Listeners, d.lacksExtension)
}

func (d *differ) lacksExtension(want Listener) bool {
	have := d.actual.listener(want.ListenerKey)
	return slices.ContainsFunc(want.Extensions, func(extension alicloud.DomainExtension) bool {
		return have == nil || indexOfDomain(have.Extensions, extension.Domain) < 0
	})
}

func (d *differ) noteDomains(digests []string) {
	value := joinDigests(digests)
	if value == d.noted {
		return
	}
	step := Step{Op: OpUntag, Target: targetDomains, Before: tagDomains, tagKeys: []string{tagDomains}}
	if value != "" {
		step = Step{
			Op: OpTag, Target: targetDomains, After: tagDomains + "=" + value,
			loadBalancer: alicloud.LoadBalancer{Tags: []alicloud.Tag{{Key: tagDomains, Value: value}}},
		}
	}
	for _, earlier := range d.plan.Steps {
		if earlier.Op == OpDeleteExtension {
			step.needs = append(step.needs, earlier.Target)
		}
	}
	d.step(step)
	d.noted = value
}
