package provider

import (
	"cmp"
	"strings"
)

// sessionPrefix starts the name of a session, userAgentCluster the cluster in the user agent. ActionTrail records both with each call, so
// that it shows which of the clusters of an account has done what.
const (
	sessionPrefix    = "ccm-"
	userAgentCluster = "cluster/"
)

// sessionName is the name of the session of a role that this cluster assumes. It is cut to what STS accepts, which leaves 28 characters of
// a cluster ID. An empty ID is not known.
func sessionName(clusterID string) string {
	name := sessionPrefix + auditable(cmp.Or(clusterID, "unknown"))
	return name[:min(len(name), maxSessionName)]
}

// userAgent says who makes a call to the cloud.
func userAgent(clusterID string) string {
	if clusterID == "" {
		return clientName
	}
	return clientName + " " + userAgentCluster + auditable(clusterID)
}

// auditable replaces what neither the name of a session nor a header may contain.
func auditable(clusterID string) string {
	return strings.Map(func(r rune) rune {
		if notInSessionName(r) {
			return '-'
		}
		return r
	}, clusterID)
}
