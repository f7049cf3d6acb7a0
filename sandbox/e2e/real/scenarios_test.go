//go:build linux && real

package real

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/cluster"
)

// web is a Deployment that is spread over the machines, behind an internet load balancer with quick health checks.
const web = `
apiVersion: v1
kind: Service
metadata:
  name: web
  annotations:
    service.beta.kubernetes.io/alibaba-cloud-loadbalancer-address-type: internet
    service.beta.kubernetes.io/alibaba-cloud-loadbalancer-health-check-type: tcp
    service.beta.kubernetes.io/alibaba-cloud-loadbalancer-health-check-interval: "1"
    service.beta.kubernetes.io/alibaba-cloud-loadbalancer-health-check-connect-timeout: "1"
    service.beta.kubernetes.io/alibaba-cloud-loadbalancer-healthy-threshold: "2"
    service.beta.kubernetes.io/alibaba-cloud-loadbalancer-unhealthy-threshold: "2"
spec:
  type: LoadBalancer
  selector: {app: web}
  ports: [{name: http, port: 80, targetPort: 8080}]
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web}
spec:
  minAvailable: 2
  selector: {matchLabels: {app: web}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 4
  selector: {matchLabels: {app: web}}
  strategy: {rollingUpdate: {maxUnavailable: 0, maxSurge: 2}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 30
      topologySpreadConstraints: # of each revision: beside the old pods, one machine would get all of the new ones
      - maxSkew: 1
        topologyKey: kubernetes.io/hostname
        whenUnsatisfiable: ScheduleAnyway
        labelSelector: {matchLabels: {app: web}}
        matchLabelKeys: [pod-template-hash]
      tolerations: # of a dead machine only for some seconds
      - {key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 5}
      - {key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: 5}
      containers:
      - name: web
        image: ` + cluster.TestServerImage + `
        env: [{name: NODE_NAME, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}]
        readinessProbe: {httpGet: {path: /ready, port: 8080}, periodSeconds: 1}
`

// detection is how long the cluster may take to see that a machine is dead and to send nothing there any more: four missed heartbeats of
// two seconds, then the manager's pass and kube-proxy's; doubled for a busy host.
const detection = 30 * time.Second

// TestUnderLoad sends a constant stream of requests from the internet while things happen. A step says which requests may fail.
func TestUnderLoad(t *testing.T) {
	manifestOfUsers(t)
	apply(t, web)
	kubectl(t, "", "rollout", "status", "deployment/web", "--timeout=90s")
	vip := vipOf(t, "web")
	outside, url := at(t, internetClient), "http://"+vip
	answers(t, outside, url)
	backendsAre(t, vip, 1, 2)

	t.Run("rolling update", func(t *testing.T) {
		requests := outside.stream(t, url)
		kubectl(t, "", "rollout", "restart", "deployment/web")
		kubectl(t, "", "rollout", "status", "deployment/web", "--timeout=90s")
		requests.wantNone()
	})
	t.Run("the manager is killed and another one takes over", func(t *testing.T) {
		requests := outside.stream(t, url)
		pods, err := podsOf(t.Context(), metav1.NamespaceSystem, "app=cloud-controller-manager")
		if err != nil {
			t.Fatal(err)
		}
		for _, pod := range pods {
			kubectl(t, "", "-n", "kube-system", "delete", "pod", pod.Name, "--grace-period=0", "--force")
		}
		apply(t, strings.NewReplacer("name: web\n  annotations", "name: later\n  annotations").Replace(strings.SplitN(web, "---", 2)[0]))
		answers(t, outside, "http://"+vipOf(t, "later"))
		requests.wantNone()
	})
	t.Run("drain", func(t *testing.T) {
		requests := outside.stream(t, url)
		kubectl(t, "", "drain", nodeName(2), "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=90s")
		requests.wantNone()
		kubectl(t, "", "uncordon", nodeName(2))
		respread(t)
	})
	t.Run("kubelet stopped", func(t *testing.T) {
		requests := outside.stream(t, url)
		order(t, http.MethodPost, "/_sandbox/machines/"+instanceID(2)+"/stop/kubelet", "")
		nodeIs(t, nodeName(2), false)
		backendsAre(t, vip, 1)
		order(t, http.MethodPost, "/_sandbox/machines/"+instanceID(2)+"/start/kubelet", "")
		nodeIs(t, nodeName(2), true)
		backendsAre(t, vip, 1, 2)
		requests.wantNone()
		respread(t)
	})
	t.Run("scaled to zero and back", func(t *testing.T) {
		kubectl(t, "", "scale", "deployment/web", "--replicas=0")
		until(t, "no pod is left", func(ctx context.Context) string {
			pods, err := podsOf(ctx, metav1.NamespaceDefault, "app=web")
			if err != nil || len(pods) > 0 {
				return fmt.Sprintf("%d pods, %v", len(pods), err)
			}
			return ""
		})
		if _, err := outside.get(t.Context(), url); err == nil {
			t.Error("a Service without pods answers")
		}
		kubectl(t, "", "scale", "deployment/web", "--replicas=4")
		answers(t, outside, url)
		requests := outside.stream(t, url)
		kubectl(t, "", "rollout", "status", "deployment/web", "--timeout=90s")
		requests.wantNone()
		if got := vipOf(t, "web"); got != vip {
			t.Errorf("the address changed from %s to %s", vip, got)
		}
	})
	t.Run("node loses its power and reboots", func(t *testing.T) {
		requests := outside.stream(t, url)
		cut := time.Now()
		order(t, http.MethodPut, "/_emulator/instances/"+instanceID(2), `{"Status":"Stopped"}`)
		nodeIs(t, nodeName(2), false)
		backendsAre(t, vip, 1)
		answers(t, outside, url)
		order(t, http.MethodPut, "/_emulator/instances/"+instanceID(2), `{"Status":"Running"}`)
		nodeIs(t, nodeName(2), true)
		backendsAre(t, vip, 1, 2)
		requests.wantNoneAfter(fmt.Sprintf("the power cut and %s", detection), cut.Add(detection))
		respread(t)
	})
	t.Run("node released, and a new one", func(t *testing.T) {
		nodeReleased(t, outside, []string{url}, func(instances ...int) { backendsAre(t, vip, instances...) })
	})
}

// nodeReleased lets a node join, which becomes a backend server, and releases its instance under a stream of requests to all URLs.
func nodeReleased(t *testing.T, from place, urls []string, backendsAre func(instances ...int)) {
	t.Helper()
	newcomer := fmt.Sprintf(`{"InstanceName":%q,"VSwitchId":"vsw-b"}`, nodeName(3))
	order(t, http.MethodPut, "/_emulator/instances/"+instanceID(3), newcomer)
	nodeIs(t, nodeName(3), true)
	// The first two have the label of control-plane nodes, as the manager's DaemonSet wants it: they are backends only as long as there
	// is no other node.
	backendsAre(3)
	kubectl(t, "", "label", "node", nodeName(3), "node-role.kubernetes.io/master=")
	backendsAre(1, 2, 3)
	var streams []*stream
	for _, url := range urls {
		streams = append(streams, from.stream(t, url))
	}
	cut := time.Now()
	order(t, http.MethodDelete, "/_emulator/instances/"+instanceID(3), "")
	until(t, "the Node is deleted", func(ctx context.Context) string {
		if _, err := sandbox.client.CoreV1().Nodes().Get(ctx, nodeName(3), metav1.GetOptions{}); err == nil {
			return "it exists"
		}
		return ""
	})
	backendsAre(1, 2)
	for _, requests := range streams {
		requests.wantNoneAfter(fmt.Sprintf("the release and %s", detection), cut.Add(detection))
	}
}

// respread gives every machine its share of the pods again. The scheduler only prefers that, so it is repeated: where one machine has all
// of them, a step that takes the machine away would rightly stop everything.
func respread(t *testing.T) {
	t.Helper()
	until(t, "every machine has pods", func(ctx context.Context) string {
		kubectl(t, "", "rollout", "restart", "deployment/web")
		kubectl(t, "", "rollout", "status", "deployment/web", "--timeout=90s")
		pods, err := podsOf(ctx, metav1.NamespaceDefault, "app=web")
		if err != nil {
			return err.Error()
		}
		on := map[string]int{}
		for _, pod := range pods {
			if pod.DeletionTimestamp == nil {
				on[pod.Spec.NodeName]++
			}
		}
		if on[nodeName(1)] == 0 || on[nodeName(2)] == 0 {
			return fmt.Sprintf("they are on %v", on)
		}
		return ""
	})
}

// backendsAre waits until exactly these instances are behind an address.
func backendsAre(t *testing.T, vip string, instances ...int) {
	t.Helper()
	var want []string
	for _, i := range instances {
		want = append(want, instanceID(i))
	}
	until(t, fmt.Sprintf("backends are %v", instances), func(ctx context.Context) string {
		have, err := backends(ctx, vip)
		if err != nil {
			return err.Error()
		}
		if slices.Sort(have); !slices.Equal(have, want) {
			return fmt.Sprintf("they are %v", have)
		}
		return ""
	})
}
