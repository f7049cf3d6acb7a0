package mark

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// Group is the identity of a group of Services that share load balancers that this program makes for them.
type Group struct {
	ClusterID, Namespace, Name string
}

// Names of CLBs have at most so many characters:
// https://www.alibabacloud.com/help/en/slb/classic-load-balancer/developer-reference/api-slb-2014-05-15-createloadbalancer.
const maxBalancerName = 80

// Mark is the value of [TagGroup]: cluster/namespace/name, of which a digest takes the place of what is too long.
func (g Group) Mark() string {
	return shortenText(strings.Join([]string{g.ClusterID, g.Namespace, g.Name}, "/"), maxTagValue)
}

// DefaultName is the name of a load balancer of the group when no annotation gives one.
func (g Group) DefaultName() string {
	return shortenText(strings.Join([]string{markPrefix, "group", g.Namespace, g.Name}, "-"), maxBalancerName)
}

// String returns namespace/name.
func (g Group) String() string { return g.Namespace + "/" + g.Name }

// Is reports whether both are the same group, also where one of them was read from a mark that was shortened.
func (g Group) Is(other Group) bool {
	// Each pass compares many groups, of which hardly any is long.
	return g == other || (g.isLong() || other.isLong()) && g.Mark() == other.Mark()
}

// isLong reports whether the mark is shortened.
func (g Group) isLong() bool {
	return len(g.ClusterID)+len(g.Namespace)+len(g.Name)+len("//") > maxTagValue
}

// IsZero reports whether it is no group.
func (g Group) IsZero() bool { return g == Group{} }

// ParseGroup returns the group of a [Group.Mark]. The name of one that was shortened is not complete.
func ParseGroup(text string) (Group, bool) {
	parts := strings.Split(text, "/")
	if len(parts) != 3 { //nolint:mnd // cluster/namespace/name
		return Group{}, false
	}
	return Group{ClusterID: parts[0], Namespace: parts[1], Name: parts[2]}, true
}

// GroupOn returns the group whose Services share a load balancer with these tags, false for none.
func GroupOn(tags []alicloud.Tag) (Group, bool) {
	at := slices.IndexFunc(tags, func(tag alicloud.Tag) bool { return tag.Key == TagGroup })
	if at < 0 {
		return Group{}, false
	}
	return ParseGroup(tags[at].Value)
}

// IsGroup reports whether a place that a Service is on, or leaves, is a group by its [Group.Mark], and not a load balancer by its id.
func IsGroup(place string) bool {
	_, is := ParseGroup(place)
	return is
}

// shortenText returns a text of at most so many characters, which is another one for each text.
func shortenText(text string, most int) string {
	if len(text) <= most {
		return text
	}
	sum := sha256.Sum256([]byte(text))
	digest := "-" + hex.EncodeToString(sum[:digestOfName])
	return text[:most-len(digest)] + digest
}
