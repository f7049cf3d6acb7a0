package diff

import (
	"slices"
	"strings"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/model"
)

// usualExtensions is the quota of domain extensions of a listener that nobody has raised.
// Source: https://www.alibabacloud.com/help/en/slb/classic-load-balancer/developer-reference/api-slb-2014-05-15-createdomainextension.
const usualExtensions = 3

// extensionSteps makes the steps on the domain extensions of a listener; have is nil for a listener that the plan creates.
// Extensions that the annotation never named stay. New ones come before old ones go, unless there is no room for both.
func (d *differ) extensionSteps(want, have *model.Listener) {
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
			d.extensionStep(model.OpSetExtension, want, extension, present[i].CertificateID, extension.CertificateID)
		}
	}
	for _, extension := range present {
		if indexOfDomain(want.Extensions, extension.Domain) < 0 && slices.Contains(d.desired.RemoveDomains, strings.ToLower(extension.Domain)) {
			gone = append(gone, extension)
		}
	}
	if len(present)+len(added) <= usualExtensions {
		d.createExtensions(want, added)
		added = nil
	}
	for _, extension := range gone {
		d.extensionStep(model.OpDeleteExtension, want, extension, extension.CertificateID, "")
	}
	d.createExtensions(want, added)
}

func (d *differ) createExtensions(listener *model.Listener, extensions []alicloud.DomainExtension) {
	for _, extension := range extensions {
		d.extensionStep(model.OpCreateExtension, listener, extension, "", extension.CertificateID)
	}
}

func (d *differ) extensionStep(op model.Op, listener *model.Listener, extension alicloud.DomainExtension, before, after string) {
	key := listener.ListenerKey
	d.addStep(model.Step{
		Op: op, Target: model.TargetListener(key) + " " + extension.Domain, Before: before, After: after,
		Needs: []string{model.TargetListener(key)}, Listener: alicloud.Listener{ListenerKey: key}, Extension: extension,
	})
}

func indexOfDomain(extensions []alicloud.DomainExtension, domain string) int {
	return slices.IndexFunc(extensions, func(e alicloud.DomainExtension) bool { return strings.EqualFold(e.Domain, domain) })
}
