package mark

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// Names of server groups of NLB have at most so many characters:
// https://www.alibabacloud.com/help/en/slb/network-load-balancer/developer-reference/api-nlb-2022-04-30-createservergroup.
const (
	maxGroupName = 128
	// keptOfName is how much of a longer name is kept before a digest of the whole one.
	keptOfName   = 119
	digestOfName = 4
)

const nlbSeparator = "."

// NLBMark returns the description of a listener of an NLB: port is a number, or a range as start_end, and protocol is in capitals.
func (o Owner) NLBMark(port, protocol string) string {
	return strings.Join([]string{markPrefix, port, protocol, o.Service.Name, o.Service.Namespace, o.ClusterID}, nlbSeparator)
}

// NLBGroupName returns the name of a server group, which is also the description of the backend servers in it: port is the node port,
// the target port (by number or name) or a range as start_end.
func (o Owner) NLBGroupName(port, protocol string) string {
	name := o.NLBMark(port, protocol)
	if len(name) <= maxGroupName {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return name[:keptOfName] + "-" + hex.EncodeToString(sum[:digestOfName])
}

// NLBSecurityGroup returns the name and the description of the security group of a Service, and of its rules.
func (o Owner) NLBSecurityGroup(uid types.UID) (name, description string) {
	return "k8s-nlb-" + DefaultName(uid), strings.Join([]string{markPrefix, o.Service.Namespace, o.Service.Name, o.ClusterID}, nlbSeparator)
}

// OwnsNLB reports whether text is one of the owner's marks on an NLB.
func (o Owner) OwnsNLB(text string) bool {
	service, clusterID, ok := ParseNLB(text)
	return ok && service == o.Service && clusterID == o.ClusterID
}

// OwnedNLBByOther reports whether text is the mark of another Service or cluster.
func (o Owner) OwnedNLBByOther(text string) bool {
	_, _, ok := ParseNLB(text)
	return ok && !o.OwnsNLB(text)
}

// ParseNLB takes a mark on an NLB apart. Text that is not exactly a mark was written by somebody else.
func ParseNLB(text string) (service types.NamespacedName, clusterID string, ok bool) {
	parts := strings.Split(text, nlbSeparator)
	if len(parts) != 6 || parts[0] != markPrefix {
		return types.NamespacedName{}, "", false
	}
	return types.NamespacedName{Name: parts[3], Namespace: parts[4]}, parts[5], true
}

// CheckNLBCluster returns why a cluster id cannot be part of marks on an NLB.
func CheckNLBCluster(clusterID string) error {
	if strings.Contains(clusterID, nlbSeparator) {
		return fmt.Errorf("cluster ID %q contains a dot, which separates the parts of the names of NLB resources: choose one without a dot",
			clusterID)
	}
	return nil
}
