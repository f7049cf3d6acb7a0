package slb

import (
	"fmt"
	"slices"
	"strings"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// Bounds of the annotation domain-extensions. The quota of a listener is 3 and may be raised to 10; the cloud says which.
// Source: https://www.alibabacloud.com/help/en/slb/classic-load-balancer/developer-reference/api-slb-2014-05-15-createdomainextension.
const (
	maxExtensions = 10
	maxDomainLen  = 80
)

const domainPattern = `(\*\.)?[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)+`

// parseExtensions reads "domain:certificate,domain2:certificate2", sorted by domain. Letter case of domains does not count.
func parseExtensions(text string) ([]alicloud.DomainExtension, error) {
	var extensions []alicloud.DomainExtension
	for item := range strings.SplitSeq(text, ",") {
		domain, certificate, _ := strings.Cut(strings.TrimSpace(item), ":")
		if len(domain) > maxDomainLen || !wholeMatch(domainPattern, domain) || !wholeMatch(certificatePattern, certificate) {
			return nil, fmt.Errorf("%q is no domain:certificate", item)
		}
		extensions = append(extensions, alicloud.DomainExtension{Domain: strings.ToLower(domain), CertificateID: certificate})
	}
	slices.SortFunc(extensions, func(a, b alicloud.DomainExtension) int { return strings.Compare(a.Domain, b.Domain) })
	for i := 1; i < len(extensions); i++ {
		if extensions[i].Domain == extensions[i-1].Domain {
			return nil, fmt.Errorf("domain %q twice", extensions[i].Domain)
		}
	}
	if len(extensions) > maxExtensions {
		return nil, fmt.Errorf("%d domains, at most %d", len(extensions), maxExtensions)
	}
	return extensions, nil
}

// extensionsOf returns what the annotation asks for; its value was accepted before.
func extensionsOf(params Params) []alicloud.DomainExtension {
	if !params.Has(DomainExtensions) {
		return nil
	}
	extensions, err := parseExtensions(params.Get(DomainExtensions))
	if err != nil {
		return nil
	}
	return extensions
}
