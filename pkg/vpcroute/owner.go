package vpcroute

import "strings"

// markPrefix begins the description of every entry that this program makes. It must not change: entries carry it for years,
// and it is how an entry is recognized whose node went away while this program was down.
const markPrefix = "k8s/pod-cidr"

// sharedClusterID is the cluster id of every cluster whose own is not known: the official CCM's literal. It proves nothing, for
// other clusters in the VPC may have it too.
const sharedClusterID = "clusterid"

// owner is who made an entry, as its description says.
type owner int

const (
	// nobody says that the entry has no description, as the official CCM's, or a mark that several clusters may write.
	nobody owner = iota
	thisCluster
	somebodyElse
)

// mark is the description of this cluster's entries.
func (c Config) mark() string {
	if c.ClusterID == "" {
		return markPrefix
	}
	return markPrefix + "/" + c.ClusterID
}

// ownerOf returns who made the entry. One that leads to no single instance is somebody else's.
func ownerOf(config Config, e entry) owner {
	switch {
	case e.hop == "":
		return somebodyElse
	case e.Description == "" && config.isClusterCIDR(e.cidr):
		// A route for all pods at once is somebody's deliberate choice, also when it leads to a node.
		return somebodyElse
	case e.Description == "", sharedMark(e):
		return nobody
	case e.Description == config.mark():
		return thisCluster
	default:
		return somebodyElse
	}
}

// sharedMark reports whether this program made the entry for a cluster whose own id was not known. The mark does not say which cluster
// that was, but once its instance is gone the entry is of use to none.
func sharedMark(e entry) bool {
	id, marked := strings.CutPrefix(e.Description, markPrefix)
	id = strings.TrimPrefix(id, "/")
	return marked && (id == "" || id == sharedClusterID)
}

// replaceable reports whether an entry in the way of a desired route may be removed.
func replaceable(config Config, known evidence, e entry) bool {
	switch ownerOf(config, e) {
	case thisCluster:
		return true
	case nobody:
		return known.former(e.route()) || known.gone(e.hop)
	default:
		return false
	}
}
