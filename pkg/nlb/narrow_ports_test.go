package nlb

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/quota"
)

// podPorts are ports with pods as backends; those of one group have one target port.
func podPorts(groups ...int32) func(*corev1.Service) {
	var all []corev1.ServicePort
	for i, target := range groups {
		port := tcpPort(int32(80 + i)) //nolint:gosec // a port
		port.TargetPort.IntVal = 8080 + target
		all = append(all, port)
	}
	return ports(all...)
}

// TestNewPortsThatShareAGroup: new ports share a server group on an NLB that has as many servers as it may have, whether the manager knows
// that or not. All are served soon, by what the others give up, and each of these keeps servers.
func TestNewPortsThatShareAGroup(t *testing.T) {
	t.Parallel()
	const nodes, truly = 3, 12
	for name, known := range map[string]map[string]int{"unknown": nil, "known": {string(quota.ServersPerNLB): truly}} {
		for _, more := range [][]int32{{4}, {4, 4}, {4, 4, 4}, {4, 5, 4}} {
			t.Run(fmt.Sprint(name, more), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					b := newBorderOn(t, cloud.Limits{ServersPerNLB: truly}, quota.NewBook(known))
					b.joinUpTo(nodes)
					wanted := podPorts(append([]int32{0, 1, 2, 3}, more...)...)
					b.podsOn(nodes, newService("web", wanted))
					b.put(newService("web", eni, podPorts(0, 1, 2, 3)))
					b.rest()
					b.change("web", wanted)
					b.fits(b.keepsServing(1, servedSoon), 4+len(more), 2)
				})
			})
		}
	}
}

// servedSoon is how long it takes until a new port has servers on an NLB that is full.
const servedSoon = 20 * time.Second

// podsOn makes a pod of a Service on each node.
func (b *border) podsOn(nodes int, svc *corev1.Service) {
	b.t.Helper()
	slice := &discoveryv1.EndpointSlice{}
	for _, port := range svc.Spec.Ports {
		var pods []string
		for i := range nodes {
			node := fmt.Sprintf("n%d", i)
			pods = append(pods, b.address(b.t, node)+"@"+node)
		}
		of := testkube.EndpointSlice(svc.Name, port, pods...)
		of.Ports = append(slice.Ports, of.Ports...)
		slice = of
	}
	testkit.Must(b.kube.DiscoveryV1().EndpointSlices(testkube.Namespace).Create(b.t.Context(), slice, metav1.CreateOptions{}))(b.t)
}
