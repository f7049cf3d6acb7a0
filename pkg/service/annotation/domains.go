package annotation

import (
	"fmt"
	"slices"
	"strings"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// Bounds of the annotation domain-extensions. The quota of a listener is 3 and may be raised to 10; the cloud says which.
// Source: https://www.alibabacloud.com/help/en/slb/classic-load-balancer/developer-reference/api-slb-2014-05-15-createdomainextension.
const (
	MaxExtensions = 10
	MaxDomainLen  = 80
)

// DomainPattern matches a domain name of at least two labels. The first label may be "*".
const DomainPattern = `(\*\.)?[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)+`

// ParseExtensions reads "domain:certificate,domain2:certificate2", sorted by domain. Letter case of domains does not count.
func ParseExtensions(text string) ([]alicloud.DomainExtension, error) {
	var extensions []alicloud.DomainExtension
	for item := range strings.SplitSeq(text, ",") {
		domain, certificate, _ := strings.Cut(strings.TrimSpace(item), ":")
		if len(domain) > MaxDomainLen || !wholeMatch(DomainPattern, domain) || !wholeMatch(CertificatePattern, certificate) {
			return nil, fmt.Errorf("%q does not have the form domain:certificate", item)
		}
		extensions = append(extensions, alicloud.DomainExtension{Domain: strings.ToLower(domain), CertificateID: certificate})
	}
	slices.SortFunc(extensions, func(a, b alicloud.DomainExtension) int { return strings.Compare(a.Domain, b.Domain) })
	for i := 1; i < len(extensions); i++ {
		if extensions[i].Domain == extensions[i-1].Domain {
			return nil, fmt.Errorf("domain %q twice", extensions[i].Domain)
		}
	}
	if len(extensions) > MaxExtensions {
		return nil, fmt.Errorf("%d domains, at most %d", len(extensions), MaxExtensions)
	}
	return extensions, nil
}

// DomainExtensionsOf returns what the annotation asks for; its value was accepted before.
func DomainExtensionsOf(params Params) []alicloud.DomainExtension {
	if !params.Has(DomainExtensions) {
		return nil
	}
	extensions, err := ParseExtensions(params.Get(DomainExtensions))
	if err != nil {
		return nil
	}
	return extensions
}
