package slb

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// tagDomains holds the digests of the domains whose extensions were made for the annotation, so that those that leave it
// can be told from extensions of the user's own, also after a restart.
const tagDomains = "alicloud-ccm.domains"

// domainMemory is which domains are or were written for the annotation domain-extensions.
type domainMemory struct {
	// before and now are digests of domains, sorted.
	before, now []string
	// keep says that the tag is kept. A CLB that was adopted gets one with the first extension that is made on it, a CLB
	// that its user made never does.
	keep bool
}

// writtenDomains compares the annotation with what was written before. The rules are those of [appliedHistory].
func writtenDomains(known *memory, params Params) domainMemory {
	m := domainMemory{now: digestsOfDomains(extensionsOf(params)), before: known.domains}
	switch {
	case known.actual == nil:
		m.keep = true
		return m
	case known.actual.Reused:
		m.before = known.written.domainDigests()
		return m
	}
	text, tagged := known.actual.LoadBalancer.Tag(tagDomains)
	if tagged {
		m.before = splitDigests(text)
	}
	_, ours := known.actual.LoadBalancer.Tag(tagApplied)
	m.keep = tagged || ours || len(m.before) > 0 && !slices.Equal(m.before, m.now)
	return m
}

// all returns the digests of both sets.
func (m domainMemory) all() []string {
	all := slices.Concat(m.before, m.now)
	slices.Sort(all)
	return slices.Compact(all)
}

func (m domainMemory) wrote(domain string) bool {
	return slices.Contains(m.before, digestOfDomain(domain))
}

func digestsOfDomains(extensions []alicloud.DomainExtension) []string {
	var digests []string
	for _, extension := range extensions {
		digests = append(digests, digestOfDomain(extension.Domain))
	}
	slices.Sort(digests)
	return digests
}

// digestOfDomain: the digests of twice [maxExtensions] domains, without anything between them, fit into a tag's value.
func digestOfDomain(domain string) string {
	sum := sha256.Sum256([]byte(strings.ToLower(domain)))
	return hex.EncodeToString(sum[:])[:digestLength]
}

func joinDigests(digests []string) string { return strings.Join(digests, "") }

func splitDigests(text string) []string {
	var digests []string
	for len(text) >= digestLength {
		digests, text = append(digests, text[:digestLength]), text[digestLength:]
	}
	return digests
}

// mayHaveExtensions reports whether extensions are to be looked for. Most Services never had any.
func mayHaveExtensions(params Params, known *memory) bool {
	if known.actual == nil || known.actual.Reused && !params.overridesListeners() {
		return false
	}
	_, tagged := known.actual.LoadBalancer.Tag(tagDomains)
	return tagged || params.Has(DomainExtensions) || len(known.domains) > 0 || known.actual.Reused && len(known.written.Domains) > 0
}

// observeExtensions adds their extensions to the HTTPS listeners that are the Service's or nobody's.
func observeExtensions(ctx context.Context, api reader, model *Model, service types.NamespacedName) error {
	for i := range model.Listeners {
		listener := &model.Listeners[i]
		marked, _, ok := parseMark(listener.Description)
		if listener.Protocol != alicloud.ProtocolHTTPS || ok && marked != service {
			continue
		}
		extensions, err := api.DescribeDomainExtensions(ctx, model.LoadBalancer.ID, listener.Port)
		if err != nil && !goneListener(err) {
			return fmt.Errorf("read the domain extensions of listener %s of %s: %w", listener.ListenerKey, model.LoadBalancer.ID, err)
		}
		listener.Extensions = extensions
	}
	return nil
}
