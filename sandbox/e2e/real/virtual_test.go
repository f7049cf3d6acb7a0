//go:build linux && real

package real

import (
	"strings"
	"testing"

	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/cluster"
)

// container is a Deployment on the virtual node behind an intranet load balancer.
const container = `
apiVersion: v1
kind: Service
metadata:
  name: container
  annotations: {service.beta.kubernetes.io/alibaba-cloud-loadbalancer-address-type: intranet}
spec:
  type: LoadBalancer
  externalTrafficPolicy: Local # otherwise the machines are backend servers, too, and pass requests on
  selector: {app: container}
  ports: [{name: http, port: 80, targetPort: 8080}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: container}
spec:
  replicas: 1
  selector: {matchLabels: {app: container}}
  template:
    metadata: {labels: {app: container}}
    spec:
      nodeSelector: {type: virtual-kubelet}
      tolerations: [{key: virtual-kubelet.io/provider, operator: Exists}]
      containers: [{name: web, image: ` + cluster.TestServerImage + `, ports: [{containerPort: 8080}]}]
`

// TestVirtualNode puts a container instance behind a load balancer: its network interface is the backend, as it has no machine.
func TestVirtualNode(t *testing.T) {
	manifestOfUsers(t)
	apply(t, container)
	vip := vipOf(t, "container")
	if r := answers(t, at(t, vpcClient), "http://"+vip); r.Node != "virtual-1" {
		t.Errorf("%s on node %q answers", r.Name, r.Node)
	}
	have, err := backends(t.Context(), vip)
	if err != nil || len(have) != 1 || !strings.HasPrefix(have[0], "eni-eci-") {
		t.Errorf("backends are %v, %v, want the network interface", have, err)
	}
}
