package slb

import (
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// Marks by which a CLB, its listeners and its vServer groups are recognised as a Service's. They are those of the vendor's
// own controller, so that either program can take over what the other made; none may ever change.
const (
	// tagOwner holds the default name, which is derived from the UID of the Service.
	tagOwner = "kubernetes.do.not.delete"
	// tagCluster holds the cluster id.
	tagCluster = "ack.aliyun.com"
	// tagReused is set to "true" on a CLB that its user made and a Service names by id. It is never removed.
	tagReused = "kubernetes.reused.by.user"

	// protectionReason is shown by the console when it refuses a change.
	protectionReason = "managed.by.ack"

	markPrefix = "k8s"

	// maxDefaultName is how many characters of the default name count.
	maxDefaultName = 32
)

// DefaultName is the CLB's name when no annotation gives one, and always the value of its owner tag.
func DefaultName(uid types.UID) string {
	name := "a" + strings.ReplaceAll(string(uid), "-", "")
	return name[:min(len(name), maxDefaultName)]
}

// nameOf returns the namespace and the name of a Service.
func nameOf(svc *corev1.Service) types.NamespacedName {
	return types.NamespacedName{Namespace: svc.Namespace, Name: svc.Name}
}

// owner is the identity that marks carry.
type owner struct {
	service   types.NamespacedName
	clusterID string
}

func ownerOf(svc *corev1.Service, clusterID string) owner {
	return owner{service: types.NamespacedName{Namespace: svc.Namespace, Name: svc.Name}, clusterID: clusterID}
}

// mark returns the description of a listener (port is the Service's) or the name of a group (port is the node port, or
// the target port where members are addresses of pods).
func (o owner) mark(port string) string {
	return strings.Join([]string{markPrefix, port, o.service.Name, o.service.Namespace, o.clusterID}, "/")
}

func (o owner) portMark(port int32) string { return o.mark(strconv.Itoa(int(port))) }

// owns reports whether text is one of the owner's marks.
func (o owner) owns(text string) bool {
	marked, clusterID, ok := parseMark(text)
	return ok && marked == o.service && clusterID == o.clusterID
}

// ownedByOther reports whether text is the mark of another Service or cluster. Text that is no mark was written by a human.
func (o owner) ownedByOther(text string) bool {
	_, _, ok := parseMark(text)
	return ok && !o.owns(text)
}

// parseMark takes a mark apart. Text that is not exactly a mark was written by somebody else.
func parseMark(text string) (service types.NamespacedName, clusterID string, ok bool) {
	parts := strings.Split(text, "/")
	if len(parts) != 5 || parts[0] != markPrefix {
		return types.NamespacedName{}, "", false
	}
	return types.NamespacedName{Name: parts[2], Namespace: parts[3]}, parts[4], true
}

// ownerTags are the tags of a CLB of ours.
func ownerTags(svc *corev1.Service, clusterID string) []alicloud.Tag {
	return []alicloud.Tag{
		{Key: tagOwner, Value: DefaultName(svc.UID)},
		{Key: tagCluster, Value: clusterID},
	}
}

// Earlier versions kept the Record of a CLB of ours in three tags. They are read where no Record exists yet, and are removed
// with the next write that touches the tags of the CLB.
const (
	// tagApplied holds the codes of annotations, joined by dots; see Annotation.Code.
	tagApplied = "alicloud-ccm.applied"
	// tagWritten holds digests of tag keys, joined by dots.
	tagWritten = "alicloud-ccm.tags"
	// tagDomains holds digests of domains, one after the other.
	tagDomains = "alicloud-ccm.domains"
)

// legacyTags are their keys.
func legacyTags() []string { return []string{tagApplied, tagDomains, tagWritten} }
