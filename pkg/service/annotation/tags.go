package annotation

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
)

// Bounds of tags. Source:
// https://www.alibabacloud.com/help/en/slb/classic-load-balancer/developer-reference/api-slb-2014-05-15-tagresources.
const (
	MaxTags        = 20
	MaxTagKeyLen   = 64
	MaxTagValueLen = 128
)

// OwnTags is how many tags of ours a CLB has.
const OwnTags = 2

// ReservedTags are the keys of our own tags, which no annotation can set.
var ReservedTags = sets.New(mark.TagOwner, mark.TagCluster, mark.TagReused, mark.TagAllow, mark.TagPreserved, mark.TagGroup)

// parseTags reads "k=v,k2=v2". A key without value has the empty one. As with the official CCM, a value ends at a second "=".
func parseTags(text string) ([]alicloud.Tag, error) {
	var tags []alicloud.Tag
	seen := sets.New[string]()
	for item := range strings.SplitSeq(text, ",") {
		key, value, _ := strings.Cut(strings.TrimSpace(item), "=")
		if err := checkTag(key, value); err != nil {
			return nil, err
		}
		if seen.Has(key) {
			return nil, fmt.Errorf("tag %q twice", key)
		}
		seen.Insert(key)
		value, _, _ = strings.Cut(value, "=")
		tags = append(tags, alicloud.Tag{Key: key, Value: value})
	}
	if len(tags) > MaxTags-OwnTags {
		return nil, fmt.Errorf("%d tags, at most %d", len(tags), MaxTags-OwnTags)
	}
	return tags, nil
}

// TagsOf returns what the annotation asks for, nothing where its value was refused.
func TagsOf(params Params) []alicloud.Tag {
	if !params.Has(AdditionalTags) {
		return nil
	}
	tags, err := parseTags(params.Get(AdditionalTags))
	if err != nil {
		return nil
	}
	return tags
}

// cutsTag reports whether a value of a tag holds an "=", at which it ends.
func cutsTag(p Params) bool {
	return slices.ContainsFunc(strings.Split(p.Get(AdditionalTags), ","), func(item string) bool { return strings.Count(item, "=") > 1 })
}

func checkTag(key, value string) error {
	if key == "" || utf8.RuneCountInString(key) > MaxTagKeyLen || utf8.RuneCountInString(value) > MaxTagValueLen {
		return fmt.Errorf("tag %q=%q: the key has 1 to %d characters, the value at most %d", key, value, MaxTagKeyLen, MaxTagValueLen)
	}
	if ReservedTags.Has(strings.TrimSpace(key)) { // the cloud may leave out spaces
		return fmt.Errorf("tag %q is reserved", key)
	}
	for _, part := range []string{key, value} {
		if strings.HasPrefix(part, "aliyun") || strings.HasPrefix(part, "acs:") ||
			strings.Contains(part, "http://") || strings.Contains(part, "https://") {
			return fmt.Errorf("tag %q=%q contains text that the cloud reserves", key, value)
		}
	}
	return nil
}
