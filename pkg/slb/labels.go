package slb

// Finalizers and labels on the Service.
const (
	// Finalizer keeps a Service until its CLB is gone. It is the vendor's own controller's, so that a user can go back to
	// that at any time.
	Finalizer = "service.k8s.alibaba/resources"
	// stockFinalizer is that of the service controller of k8s.io/cloud-provider. It is never written.
	stockFinalizer = "service.kubernetes.io/load-balancer-cleanup"
	// LabelLoadBalancerID holds the id of the CLB; other programs find the CLB by it.
	LabelLoadBalancerID = "service.k8s.alibaba/loadbalancer-id"
	// labelHash is the vendor's own controller's. A stale one would make it skip the creation of a CLB.
	labelHash = "service.beta.kubernetes.io/hash"

	// Class is the load balancer class that is served beside the empty one.
	Class = "alibabacloud.com/clb"
)
