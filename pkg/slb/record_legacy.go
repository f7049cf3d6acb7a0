package slb

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
)

const (
	// digestLength is the length of a digest of a tag key or a domain.
	digestLength = 6
	// codeSourceRanges in tagApplied is [recordedSourceRanges].
	codeSourceRanges = "sr"
)

// hasLegacyTags reports whether the CLB carries tags of an earlier version.
func hasLegacyTags(lb *alicloud.LoadBalancer) bool {
	return slices.ContainsFunc(mark.LegacyTags(), func(key string) bool {
		_, ok := lb.Tag(key)
		return ok
	})
}

// legacyRecord returns what the tags of an earlier version say. Digests of domains are left for [Record.resolveDomains],
// because extensions are read later.
func legacyRecord(lb *alicloud.LoadBalancer) Record {
	var record Record
	codes, _ := lb.Tag(mark.TagApplied)
	record.Annotations = namesOfCodes(strings.Split(codes, "."))
	digests, _ := lb.Tag(mark.TagWritten)
	written := strings.Split(digests, ".")
	for _, tag := range lb.Tags {
		if !annotation.ReservedTags.Has(tag.Key) && slices.Contains(written, digest(tag.Key)) {
			record.TagKeys = append(record.TagKeys, tag.Key)
		}
	}
	domains, _ := lb.Tag(mark.TagDomains)
	for len(domains) >= digestLength {
		record.legacyDomains, domains = append(record.legacyDomains, domains[:digestLength]), domains[digestLength:]
	}
	return record.sorted()
}

func namesOfCodes(codes []string) []string {
	var names []string
	for _, row := range annotation.Table() {
		if row.Code != "" && slices.Contains(codes, row.Code) {
			names = append(names, string(row.Suffix))
		}
	}
	if slices.Contains(codes, codeSourceRanges) {
		names = append(names, recordedSourceRanges)
	}
	return names
}

func digest(name string) string {
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:])[:digestLength]
}
