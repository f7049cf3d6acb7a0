package bench

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// The products, as the journal of the emulator names them.
const (
	productCLB = "slb"
	productNLB = "nlb"
)

// What users write to get an NLB in the zones of the emulated cloud.
const (
	classNLB           = "alibabacloud.com/nlb"
	annotationZoneMaps = "service.beta.kubernetes.io/alibaba-cloud-loadbalancer-zone-maps"
	zonesOfNLB         = "cn-hangzhou-a:vsw-a,cn-hangzhou-b:vsw-b"
)

// nlbGoals: a load balancer, then for each port a group, its backend servers and a listener. Reads are those of the official CCM, counted
// from its code: it asks for each job on its own, this manager for twenty together and for those of all Services. A deletion
// takes two reads before it, two that show that the load balancer is gone, and one of the servers of each group.
var nlbGoals = goals{
	create: [2]float64{11, 26}, createWrites: [2]float64{1 + 3, 1 + 3*largePorts}, deletion: [2]float64{10, 10 + 2*(largePorts-1)},
	readsOfEdit: 3, readsOfNode: 1, callsOfPod: 9, pause: 3 * time.Second, // jobs are asked for every second
}

// newService is a load balancer of the scenario's product in front of the app.
func (e *env) newService(name string, ports int) *corev1.Service {
	service := newService(name, ports)
	if e.product == productNLB {
		service.Spec.LoadBalancerClass = new(classNLB)
		service.Annotations[annotationZoneMaps] = zonesOfNLB
	}
	return service
}
