package node

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/nodes"
)

// The spellings below are stored in spec.providerID, which Kubernetes never lets anybody change again. A spelling that
// was ever written must be read for ever, and the two that are written must stay as they are, letter by letter.
const (
	providerScheme  = "alicloud://"
	schemeSeparator = "://"
)

// Reasons why a provider ID names no ECS instance. [ParseProviderID] wraps one of them.
var (
	// ErrProviderIDEmpty says that the node has no provider ID yet: it may still get one.
	ErrProviderIDEmpty = errors.New("the provider ID is empty")
	// ErrProviderIDForeign says that the ID has the scheme of another cloud or product. Its node is not ours to touch.
	ErrProviderIDForeign = errors.New("the provider ID is not of Alibaba Cloud ECS")
	// ErrProviderIDMalformed says that the ID has our form and is malformed. Only deleting the Node and registering
	// it again can change it.
	ErrProviderIDMalformed = errors.New("the provider ID is malformed")
	// ErrOtherRegion says that the provider ID names an instance of another region.
	ErrOtherRegion = errors.New("the provider ID names another region")
	// ErrNodeExcluded says that labels keep the node out of this program's hands.
	ErrNodeExcluded = errors.New("the node is excluded by its labels")
)

// maxIDLength bounds the parts of a provider ID; real ones have some 25 characters. A kubelet may write an ID of a megabyte, and one call
// that named it would be refused for all instances in it.
const maxIDLength = 64

var (
	regionPattern   = regexp.MustCompile(`^[a-z]+-[a-z0-9]+(-[a-z0-9]+)*$`)
	instancePattern = regexp.MustCompile(`^[A-Za-z0-9]+(-[A-Za-z0-9]+)*$`)
	// zoneSuffix is what a zone id has after its region: "-a" in "cn-hangzhou-a", "a" in "us-east-1a".
	zoneSuffix = regexp.MustCompile(`^(.*[a-z0-9])-[a-z]$|^(.*[0-9])[a-z]$`)
)

// ProviderID names an ECS instance.
type ProviderID struct {
	// Region is the region id, for example "cn-hangzhou".
	Region string
	// InstanceID is the ECS instance id, for example "i-bp1g6zv0ce8oghu7k4oy".
	InstanceID string
}

// String returns the spelling that is written by default, "cn-hangzhou.i-bp1g6zv0ce8oghu7k4oy".
func (p ProviderID) String() string { return p.Region + "." + p.InstanceID }

// Prefixed returns the spelling with the scheme, "alicloud://cn-hangzhou.i-bp1g6zv0ce8oghu7k4oy", which Cluster API and
// OpenShift need.
func (p ProviderID) Prefixed() string { return providerScheme + p.String() }

// ParseProviderID reads every spelling in use: "region.instance", "alicloud://region.instance" and, written by hand and
// by early machine controllers, "alicloud:///region-or-zone/instance". The error wraps [ErrProviderIDEmpty],
// [ErrProviderIDForeign] or [ErrProviderIDMalformed].
func ParseProviderID(id string) (ProviderID, error) {
	if id == "" {
		return ProviderID{}, ErrProviderIDEmpty
	}
	rest, ours := strings.CutPrefix(id, providerScheme)
	if !ours && strings.Contains(id, schemeSeparator) {
		return ProviderID{}, fmt.Errorf("%w: %.80q", ErrProviderIDForeign, id)
	}
	place, instance, ok := strings.Cut(rest, ".")
	if path, slashed := strings.CutPrefix(rest, "/"); ours && slashed {
		place, instance, ok = strings.Cut(path, "/")
		if zone := zoneSuffix.FindStringSubmatch(place); zone != nil {
			place = zone[1] + zone[2] // its region
		}
	}
	if !ok || len(place) > maxIDLength || len(instance) > maxIDLength || !regionPattern.MatchString(place) ||
		!instancePattern.MatchString(instance) {
		return ProviderID{}, fmt.Errorf("%w: %.80q, expected %q or %q", ErrProviderIDMalformed, id,
			"<region>.<instance id>", providerScheme+"<region>.<instance id>")
	}
	return ProviderID{Region: place, InstanceID: instance}, nil
}

// InstanceIDOf returns a function that gives the instance id of a node of the region. Its error wraps one of
// [ErrProviderIDEmpty], [ErrProviderIDForeign], [ErrProviderIDMalformed], [ErrOtherRegion] and [ErrNodeExcluded].
func InstanceIDOf(region string) func(*corev1.Node) (string, error) {
	return func(node *corev1.Node) (string, error) {
		if reason := nodes.ExclusionLabel(node); reason != "" {
			return "", fmt.Errorf("node %s: %w: %s", node.Name, ErrNodeExcluded, reason)
		}
		id, err := ParseProviderID(node.Spec.ProviderID)
		if err != nil {
			return "", fmt.Errorf("node %s: %w", node.Name, err)
		}
		if id.Region != region {
			return "", fmt.Errorf("node %s: %w: %q, the cluster is in %q", node.Name, ErrOtherRegion, id.Region, region)
		}
		// Elastic container instances and Lingjun machines: the ECS list never holds them, so that asking ECS would call every one of them gone.
		if strings.HasPrefix(id.InstanceID, "eci-") || strings.HasPrefix(id.InstanceID, "e01-") {
			return "", fmt.Errorf("node %s: %w: %q", node.Name, ErrProviderIDForeign, node.Spec.ProviderID)
		}
		return id.InstanceID, nil
	}
}

// untouchable reports whether err, one of [InstanceIDOf], means that the node is none of ours.
func untouchable(err error) bool {
	return errors.Is(err, ErrProviderIDForeign) || errors.Is(err, ErrOtherRegion) || errors.Is(err, ErrNodeExcluded)
}

// nodeAddress returns the address by which the node's instance is found, its first IPv4 address, "" where it has none: ECS searches by no
// other, and might refuse a call that names one, for all addresses in it.
func nodeAddress(node *corev1.Node) string {
	if first := nodes.FirstAddress(nodes.OwnAddresses(node)); first.Is4() {
		return first.String()
	}
	return ""
}
