package main

import "time"

// A product is what a Service gets by its class.
const (
	productCLB = "clb"
	productNLB = "nlb"
)

// spec is a spec of Kubernetes and its expected result with a product.
type spec struct {
	// name is Ginkgo's without the tags in brackets.
	name string
	obstacle
}

// obstacle is why a spec cannot pass. That of a spec that passes is empty.
type obstacle struct {
	// why is the reason. skips is set if the spec then skips itself.
	why   string
	skips bool
	// limit is its timeout, if shorter than patience: specs that cannot pass would wait for a quarter of an hour.
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

// entry is a spec with both products.
type entry struct {
	name string
	// shows is what a pass shows about this project.
	shows    string
	clb, nlb obstacle
}

// specsWith are the specs with a product.
func specsWith(product string) []spec {
	all := make([]spec, 0, len(entries))
	for _, e := range entries {
		s := spec{name: e.name, obstacle: e.clb}
		if product == productNLB {
			s.obstacle = e.nlb
		}
		all = append(all, s)
	}
	return all
}

const (
	general = "LoadBalancers should "
	local   = "LoadBalancers ExternalTrafficPolicy: Local should "
)

// Obstacles of several specs.
var (
	// Affinity is decided after so many requests, or two minutes.
	noAffinity = obstacle{limit: 5 * time.Minute,
		why: "listeners of an NLB have no session persistence, and the manager reports that the field has no effect; " +
			"the annotation `scheduler: sch` is the alternative"}
	noFinalizer = obstacle{limit: 3 * time.Minute,
		why: "it expects the finalizer of the service controller of Kubernetes; this project writes that of the official CCM, " +
			"so that you can migrate back to it"}
	noNodePort = obstacle{limit: 3 * time.Minute,
		why: "the backend servers of a CLB are instances and network interfaces: without its own interface, a pod is reachable only through a node port"}
	noAddress   = obstacle{limit: 3 * time.Minute, why: "it sends packets to the IP address in the status, and an NLB has a host name"}
	skipsByName = obstacle{skips: true, why: "it skips itself without an IP address in the status"}
)

// entries are the specs of k8s.io/kubernetes/test/e2e/network that create a load balancer, longest first.
var entries = []entry{
	{name: general + "not have connectivity disruption during rolling update with externalTrafficPolicy=Cluster",
		shows: "of 100 requests per second, at least 95% succeed while the pods of a DaemonSet are replaced five times"},
	{name: general + "not have connectivity disruption during rolling update with externalTrafficPolicy=Local",
		shows: "the same, where machines leave the load balancer while their pod is replaced"},
	{name: general + "be able to change the type and ports of a TCP service",
		shows: "ClusterIP to NodePort to LoadBalancer, another node port, another port, no pods, pods again, back to ClusterIP"},
	{name: general + "be able to change the type and ports of a UDP service", shows: "the same with UDP"},
	{name: general + "only allow access from service loadbalancer source ranges",
		shows: "`loadBalancerSourceRanges` creates, changes and deletes an access control list, or the security group of an NLB"},
	{name: general + "have session affinity work for LoadBalancer service with Local traffic policy",
		shows: "`sessionAffinity: ClientIP` makes the listener send a client to the same backend server", nlb: noAffinity},
	{name: general + "be able to switch session affinity for LoadBalancer service with Local traffic policy",
		shows: "removing `sessionAffinity` disables session persistence", nlb: noAffinity},
	{name: general + "have session affinity work for LoadBalancer service with Cluster traffic policy",
		shows: "the same with all machines as backend servers", nlb: noAffinity},
	{name: general + "be able to switch session affinity for LoadBalancer service with Cluster traffic policy",
		shows: "the same with all machines as backend servers", nlb: noAffinity},
	{name: general + "be able to preserve UDP traffic when server pod cycles for a LoadBalancer service on different nodes",
		shows: "a client that keeps its UDP port reaches the new pod", nlb: noAddress},
	{name: general + "be able to preserve UDP traffic when server pod cycles for a LoadBalancer service on the same nodes",
		shows: "the same on one machine", nlb: noAddress},
	{name: general + "handle load balancer cleanup finalizer for service", clb: noFinalizer, nlb: noFinalizer},
	{name: general + "be able to create LoadBalancer Service without NodePort and change it", clb: noNodePort,
		shows: "pods without a network interface are backend servers by their addresses"},
	{name: local + "work for type=LoadBalancer",
		shows: "the pod sees the source address of the client; the node port for health checks is released with the load balancer",
		nlb:   skipsByName},
	{name: local + "only target nodes with endpoints", shows: "only machines with a pod of the Service are healthy backend servers"},
	{name: local + "target all nodes with endpoints", shows: "all machines with a pod of the Service get requests"},
	{name: "Services should fail health check node port if there are only terminating endpoints",
		shows: "a machine whose last pod terminates fails its health check"},
	{name: local + "work from pods", shows: "a pod reaches the address of the load balancer with its own source address", nlb: skipsByName},
}
