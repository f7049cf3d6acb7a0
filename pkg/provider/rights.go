package provider

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/leadership"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/node"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/rights"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/vpcroute"
)

const (
	// LeaseName is the lock of the leader election.
	LeaseName = "cloud-controller-manager"
	// officialLeaseName is the lock of the official CCM's.
	officialLeaseName = leadership.OfficialLease
)

// Rights are what the whole manager needs at the API server, by feature.
func Rights() []rights.Set {
	return []rights.Set{
		{Feature: "manager", Rights: managerRights()},
		{Feature: "services", Rights: service.Rights()},
		{Feature: "routes", Rights: vpcroute.Rights()},
		{Feature: "nodes", Rights: node.Rights()},
	}
}

// managerRights are those of the process, whichever controllers run in it. It also reads the ConfigMap
// extension-apiserver-authentication, for which Kubernetes has a role of its own.
func managerRights() []rights.Right {
	return []rights.Right{
		{
			Resource: "namespaces", Names: []string{metav1.NamespaceSystem}, Verbs: []string{"get"}, Optional: true,
			Why: "cluster ID from its UID, if the cloud-config sets none, instead of the literal clusterid of the official CCM",
		},
		{
			Resource: "configmaps", Namespace: metav1.NamespaceSystem, Names: []string{credentialsConfigMap}, Verbs: []string{"get"},
			Rare: []string{"get"}, Optional: true, Why: "showing the event InvalidCredentials in kubectl describe",
		},
		{
			Resource: "configmaps", Names: []string{clusterInfo}, Verbs: []string{"get"}, Optional: true,
			Why: "recognizing the CLB of the API server, which no Service may use, by the address that kubeadm publishes for new nodes",
		},
		{Resource: "events", Verbs: []string{"create"}, Why: "events on Services and Nodes"},
		{Resource: "events", Verbs: []string{"patch"}, Rare: []string{"patch"}, Why: "counting repeated events"},
		{
			Group: "coordination.k8s.io", Resource: "leases", Namespace: metav1.NamespaceSystem, Verbs: []string{"create"},
			Why: "the first leader election; create cannot be restricted to a name",
		},
		{
			Group: "coordination.k8s.io", Resource: "leases", Namespace: metav1.NamespaceSystem, Names: []string{LeaseName},
			Verbs: []string{"get", "update"}, Why: "leader election",
		},
		{
			Group: "coordination.k8s.io", Resource: "leases", Namespace: metav1.NamespaceSystem, Names: []string{officialLeaseName},
			Verbs: []string{"get"}, Optional: true, Why: "waiting while the official CCM holds its Lease",
		},
		{
			Group: "authentication.k8s.io", Resource: "tokenreviews", Verbs: []string{"create"}, Optional: true,
			Why: "authentication of metrics clients on the secure port",
		},
		{
			Group: "authorization.k8s.io", Resource: "subjectaccessreviews", Verbs: []string{"create"}, Optional: true,
			Why: "authorization of metrics clients on the secure port",
		},
	}
}
