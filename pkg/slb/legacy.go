package slb

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
)

// digestLength is the length of a digest of a tag key or a domain.
const digestLength = 6

// hasLegacyTags reports whether the CLB carries tags of an earlier version.
func hasLegacyTags(lb *alicloud.LoadBalancer) bool {
	return slices.ContainsFunc(mark.LegacyTags(), func(key string) bool {
		_, ok := lb.Tag(key)
		return ok
	})
}

// legacyRecord returns what the tags of an earlier version say. Of domains they have digests, which [resolveDomains] replaces once
// the extensions are read.
func legacyRecord(lb *alicloud.LoadBalancer) (record service.Record, digestsOfDomains []string) {
	codes, _ := lb.Tag(mark.TagApplied)
	record.Annotations = service.NamesOfCodes(strings.Split(codes, "."))
	digests, _ := lb.Tag(mark.TagWritten)
	written := strings.Split(digests, ".")
	for _, tag := range lb.Tags {
		if !annotation.ReservedTags.Has(tag.Key) && slices.Contains(written, digest(tag.Key)) {
			record.TagKeys = append(record.TagKeys, tag.Key)
		}
	}
	domains, _ := lb.Tag(mark.TagDomains)
	for len(domains) >= digestLength {
		digestsOfDomains, domains = append(digestsOfDomains, domains[:digestLength]), domains[digestLength:]
	}
	return record.Sorted(), digestsOfDomains
}

func digest(name string) string {
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:])[:digestLength]
}
