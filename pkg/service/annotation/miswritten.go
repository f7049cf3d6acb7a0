package annotation

import (
	"slices"
	"strings"
)

// Paused pauses one Service.
const Paused = "service.alibabacloud.com/paused"

// wholeKeys are the keys without one of the [Prefixes].
var wholeKeys = []string{BackendType, Paused, string(Move), string(MoveGrace)}

// beginnings are words with which names of annotations of this family begin, and those that people write in their place. Longer ones come
// first.
var beginnings = []string{"alibaba-cloud-", "alibabacloud-", "ali-cloud-", "alibaba-", "alicloud-", "aliyun-"}

// likelyDomain ends the domains of keys that were likely meant as one of the [Prefixes].
const likelyDomain = "kubernetes.io"

// meantKey returns the key that one without our prefixes was meant as, or "", and whether it was compared with any of ours. A load
// balancer would become public without a word if service.kubernetes.io/alibaba-cloud-loadbalancer-address-type were taken for the
// annotation of another program.
func (f *family) meantKey(key string) (meant string, compared bool) {
	if slices.Contains(wholeKeys, key) {
		return "", false
	}
	lower := strings.ToLower(strings.TrimSpace(key))
	for _, whole := range wholeKeys {
		compared = compared || similarLength(lower, whole)
		if Near(lower, whole) {
			return whole, compared
		}
	}
	domain, name, found := strings.Cut(lower, "/")
	if !found {
		domain, name = likelyDomain, lower
	}
	if !strings.HasSuffix(domain, likelyDomain) {
		return "", compared
	}
	for _, beginning := range beginnings {
		rest, ok := strings.CutPrefix(name, beginning)
		if !ok {
			continue
		}
		compared = true
		if meant := f.nearestSuffix(Suffix(rest)); meant != "" {
			return meant.Key(), compared
		}
	}
	return "", compared
}

// Near reports whether one text is the other one with a slip or two.
func Near(a, b string) bool { return similarLength(a, b) && editDistance(a, b) <= maxSlips }

// similarLength reports whether two texts are about as long, so that it takes a comparison to know whether they are near.
func similarLength(a, b string) bool { return abs(len(a)-len(b)) <= maxSlips }

// maxSlips is how many characters of a misspelled key are wrong.
const maxSlips = 2
