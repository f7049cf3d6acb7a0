package mark

import (
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// Marks by which a CLB, its listeners and its vServer groups are recognized as a Service's. They are those of the vendor's
// own controller, so that either program can take over what the other made; none may ever change.
const (
	// TagOwner holds the default name, which is derived from the UID of the Service.
	TagOwner = "kubernetes.do.not.delete"
	// TagCluster holds the cluster id.
	TagCluster = "ack.aliyun.com"
	// TagReused is set to "true" on a CLB that its owner made and a Service names by id. It is never removed.
	TagReused = "kubernetes.reused.by.user"

	// TagAllow is set by the owner of the account, on a load balancer that Services may use: see pkg/service/policy. This program never writes
	// it.
	TagAllow = "alicloud-ccm/allow"

	// TagPreserved names the Service, as [Preserved] returns it, whose load balancer stayed when the Service went, because its annotation
	// asked for that. It serves to find such load balancers, which take up a quota; removing it is safe.
	TagPreserved = "alicloud-ccm/preserved"

	// TagGroup is on a load balancer that the Services of a group share, with what [Group.Mark] returns.
	TagGroup = "alicloud-ccm/load-balancer-group"

	// ProtectionReason is shown by the console when it refuses a change.
	ProtectionReason = "managed.by.ack"

	markPrefix = "k8s"

	// maxDefaultName is how many characters of the default name count.
	maxDefaultName = 32
)

// DefaultName is the CLB's name when no annotation gives one, and always the value of its owner tag.
func DefaultName(uid types.UID) string {
	name := "a" + strings.ReplaceAll(string(uid), "-", "")
	return name[:min(len(name), maxDefaultName)]
}

// maxTagValue is how long the value of a tag may be.
const maxTagValue = 128

// Preserved is the value of [TagPreserved]: cluster/namespace/name.
func Preserved(svc *corev1.Service, clusterID string) string {
	value := strings.Join([]string{clusterID, svc.Namespace, svc.Name}, "/")
	return value[:min(len(value), maxTagValue)]
}

// TagsText returns tags as text, for people.
func TagsText(tags []alicloud.Tag) string {
	texts := make([]string, 0, len(tags))
	for _, tag := range tags {
		texts = append(texts, tag.Key+"="+tag.Value)
	}
	return strings.Join(texts, " ")
}

// ParsePreserved returns the cluster, and the namespace and name of the Service, of a value of [TagPreserved].
func ParsePreserved(value string) (clusterID, service string) {
	clusterID, service, _ = strings.Cut(value, "/")
	return clusterID, service
}

// ServiceName returns the namespace and the name of a Service.
func ServiceName(svc *corev1.Service) types.NamespacedName {
	return types.NamespacedName{Namespace: svc.Namespace, Name: svc.Name}
}

// Owner is the identity that marks carry.
type Owner struct {
	Service   types.NamespacedName
	ClusterID string
}

// OwnerOf returns the identity of a Service in the cluster.
func OwnerOf(svc *corev1.Service, clusterID string) Owner {
	return Owner{Service: ServiceName(svc), ClusterID: clusterID}
}

// Mark returns the description of a listener (port is the Service's) or the name of a group (port is the node port, or
// the target port where backends are addresses of pods).
func (o Owner) Mark(port string) string {
	return strings.Join([]string{markPrefix, port, o.Service.Name, o.Service.Namespace, o.ClusterID}, "/")
}

// PortMark is [Owner.Mark] for a number.
func (o Owner) PortMark(port int32) string { return o.Mark(strconv.Itoa(int(port))) }

// Owns reports whether text is one of the owner's marks.
func (o Owner) Owns(text string) bool {
	marked, clusterID, ok := Parse(text)
	return ok && marked == o.Service && clusterID == o.ClusterID
}

// OwnedByOther reports whether text is the mark of another Service or cluster. Text that is no mark was written by a human.
func (o Owner) OwnedByOther(text string) bool {
	_, _, ok := Parse(text)
	return ok && !o.Owns(text)
}

// Parse takes a mark apart. Text that is not exactly a mark was written by somebody else.
func Parse(text string) (service types.NamespacedName, clusterID string, ok bool) {
	// A Service with a thousand backends has as many marks, and every pass reads them: nothing is allocated.
	rest, ok := strings.CutPrefix(text, markPrefix+"/")
	if !ok || strings.Count(rest, "/") != 3 {
		return types.NamespacedName{}, "", false
	}
	_, rest, _ = strings.Cut(rest, "/")
	name, rest, _ := strings.Cut(rest, "/")
	namespace, clusterID, _ := strings.Cut(rest, "/")
	return types.NamespacedName{Name: name, Namespace: namespace}, clusterID, true
}

// Maker names, for people, who made something with this description or name: a Service, of another cluster than the given one with its
// cluster ID, or somebody by hand.
func Maker(text, clusterID string) string {
	service, marked, ok := Parse(text)
	if !ok {
		service, marked, ok = ParseNLB(text)
	}
	switch {
	case !ok && text == "":
		return "an unknown owner, without a description"
	case !ok:
		return fmt.Sprintf("an unknown owner, with the description %q", text)
	case marked != clusterID:
		return fmt.Sprintf("Service %s of cluster %s", service, marked)
	}
	return "Service " + service.String()
}

// Tags are the tags of a CLB of ours.
func Tags(svc *corev1.Service, clusterID string) []alicloud.Tag {
	return []alicloud.Tag{
		{Key: TagOwner, Value: DefaultName(svc.UID)},
		{Key: TagCluster, Value: clusterID},
	}
}
