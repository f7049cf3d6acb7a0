package main

import "time"

// spec is one of Kubernetes' specs and what is known of it.
type spec struct {
	// name is Ginkgo's without the tags in brackets.
	name string
	// shows is what it shows of this project.
	shows string
	// why says why it cannot pass; empty for those that do. skips says that it then skips itself.
	why   string
	skips bool
	// limit is how long it may take, if that is to be less than patience: those that cannot pass would wait for a quarter of an hour.
	limit time.Duration
}

// want is how the spec should end.
func (s spec) want() string {
	switch {
	case s.why == "":
		return passed
	case s.skips:
		return skipped
	default:
		return failed
	}
}

const (
	general = "LoadBalancers should "
	local   = "LoadBalancers ExternalTrafficPolicy: Local should "
)

// specs are those of k8s.io/kubernetes/test/e2e/network that make a load balancer. Those that take longest come first.
var specs = []spec{
	{name: general + "not have connectivity disruption during rolling update with externalTrafficPolicy=Cluster",
		shows: "of 100 requests a second, 95% and more are answered while the pods of a DaemonSet are replaced five times"},
	{name: general + "not have connectivity disruption during rolling update with externalTrafficPolicy=Local",
		shows: "the same, with machines that leave the load balancer while their pod is replaced"},
	{name: general + "be able to change the type and ports of a TCP service",
		shows: "ClusterIP to NodePort to LoadBalancer, another node port, another port, no pods, pods again, back to ClusterIP"},
	{name: general + "be able to change the type and ports of a UDP service", shows: "the same with UDP"},
	{name: general + "only allow access from service loadbalancer source ranges",
		shows: "`loadBalancerSourceRanges` becomes an access control list, is changed, and goes"},
	{name: general + "have session affinity work for LoadBalancer service with Local traffic policy",
		shows: "`sessionAffinity: ClientIP` makes the listener keep a client's member"},
	{name: general + "be able to switch session affinity for LoadBalancer service with Local traffic policy",
		shows: "and stops when it is taken away"},
	{name: general + "have session affinity work for LoadBalancer service with Cluster traffic policy", shows: "the same with all machines as members"},
	{name: general + "be able to switch session affinity for LoadBalancer service with Cluster traffic policy", shows: "the same with all machines as members"},
	{name: general + "be able to preserve UDP traffic when server pod cycles for a LoadBalancer service on different nodes",
		shows: "a client that keeps its UDP port reaches the new pod"},
	{name: general + "be able to preserve UDP traffic when server pod cycles for a LoadBalancer service on the same nodes", shows: "the same on one machine"},
	{name: general + "handle load balancer cleanup finalizer for service", limit: 3 * time.Minute,
		why: "it looks for the finalizer of Kubernetes' own service controller; here that of Alibaba Cloud's cloud controller manager is written, " +
			"so that one can go back to it"},
	{name: general + "be able to create LoadBalancer Service without NodePort and change it", limit: 3 * time.Minute,
		why: "members of a CLB are instances and network interfaces: a pod that has neither is reached through a node port only"},
	{name: local + "work for type=LoadBalancer", shows: "the client's source address reaches the pod; the health check's node port is freed with the load balancer"},
	{name: local + "only target nodes with endpoints", shows: "only machines with a pod of the Service are healthy members"},
	{name: local + "target all nodes with endpoints", shows: "all machines with a pod of the Service get requests"},
	{name: "Services should fail health check node port if there are only terminating endpoints",
		shows: "a machine whose last pod is ending takes itself out of the load balancer"},
	{name: local + "work from pods", shows: "a pod reaches the load balancer's address with its own source address"},
}
