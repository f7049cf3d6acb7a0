//go:build linux && real

package real

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/cluster"
)

// pods is a Deployment with a pod on each machine, behind Services that show what a load balancer does with a client.
const pods = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: net}
spec:
  replicas: 2
  selector: {matchLabels: {app: net}}
  template:
    metadata: {labels: {app: net}}
    spec:
      topologySpreadConstraints:
      - {maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: net}}}
      containers:
      - name: net
        image: ` + cluster.TestServerImage + `
        args: ["--proxy-protocol=:9090"]
        env: [{name: NODE_NAME, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}]
        readinessProbe: {httpGet: {path: /ready, port: 8080}, periodSeconds: 1}
`

// serviceOf is an internet Service in front of the Deployment. extra are lines of its metadata's annotations and of its spec.
func serviceOf(name, port, annotation, spec string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Service
metadata:
  name: %s
  annotations:
    service.beta.kubernetes.io/alibaba-cloud-loadbalancer-address-type: internet
    %s
spec:
  type: LoadBalancer
  selector: {app: net}
  ports: [%s]
  %s
`, name, annotation, port, spec)
}

const annotations = "service.beta.kubernetes.io/alibaba-cloud-loadbalancer-"

// internetAddress is where the client in the internet stands.
const internetAddress = "203.0.113.10"

// TestNetwork is about packets: who reaches whom, and what addresses they see.
func TestNetwork(t *testing.T) {
	manifestOfUsers(t)
	apply(t, pods)
	kubectl(t, "", "rollout", "status", "deployment/net", "--timeout=90s")
	outside := at(t, internetClient)

	t.Run("pods reach each other only through our routes", podsNeedRoutes)
	t.Run("externalTrafficPolicy Local keeps the client's address", func(t *testing.T) {
		apply(t, serviceOf("local", "{port: 80, targetPort: 8080}", "", "externalTrafficPolicy: Local"))
		vip := vipOf(t, "local")
		sourceIs(t, answers(t, outside, "http://"+vip), internetAddress)
		backendsAre(t, vip, 1, 2)
		kubectl(t, "", "scale", "deployment/net", "--replicas=1")
		kubectl(t, "", "rollout", "status", "deployment/net", "--timeout=90s")
		until(t, "only the pod's machine is a backend", func(ctx context.Context) string {
			if have, err := backends(ctx, vip); err != nil || len(have) != 1 {
				return fmt.Sprintf("backends are %v, %v", have, err)
			}
			return ""
		})
		sourceIs(t, answers(t, outside, "http://"+vip), internetAddress)
		kubectl(t, "", "scale", "deployment/net", "--replicas=2")
		kubectl(t, "", "rollout", "status", "deployment/net", "--timeout=90s")
	})
	t.Run("UDP", func(t *testing.T) {
		apply(t, serviceOf("udp", "{port: 53, targetPort: 8080, protocol: UDP}", "", "externalTrafficPolicy: Local"))
		vip := vipOf(t, "udp")
		until(t, "a datagram is answered", func(ctx context.Context) string {
			r, err := outside.datagram(ctx, vip+":53")
			if err != nil {
				return err.Error()
			}
			sourceIs(t, r, internetAddress)
			return ""
		})
	})
	t.Run("PROXY protocol", func(t *testing.T) {
		// Policy Cluster hides the client behind the node: only the header can name it.
		apply(t, serviceOf("proxied", "{port: 80, targetPort: 9090}", annotations+`proxy-protocol: "on"`, ""))
		sourceIs(t, answers(t, outside, "http://"+vipOf(t, "proxied")), internetAddress)
	})
	t.Run("HTTP listener", func(t *testing.T) {
		apply(t, serviceOf("http", "{port: 80, targetPort: 8080}", annotations+`protocol-port: "http:80"`, ""))
		if r := answers(t, outside, "http://"+vipOf(t, "http")); r.ForwardedFor != internetAddress {
			t.Errorf("X-Forwarded-For is %q, want %s", r.ForwardedFor, internetAddress)
		}
	})
}

// podsByNode returns a pod with an address for each machine. Those of an earlier test may still terminate.
func podsByNode(t *testing.T) map[string]corev1.Pod {
	t.Helper()
	byNode := map[string]corev1.Pod{}
	until(t, "a pod runs on each machine", func(ctx context.Context) string {
		clear(byNode)
		list, err := podsOf(ctx, metav1.NamespaceDefault, "app=net")
		for _, pod := range list {
			if pod.DeletionTimestamp == nil && pod.Status.PodIP != "" {
				byNode[pod.Spec.NodeName] = pod
			}
		}
		if len(byNode) != nodeCount {
			return fmt.Sprintf("on %d machines, %v", len(byNode), err)
		}
		return ""
	})
	return byNode
}

// podsNeedRoutes takes the manager away, removes the route entries behind its back, and lets it come back.
func podsNeedRoutes(t *testing.T) {
	byNode := podsByNode(t)
	from, to := inPod(t, byNode[nodeName(1)]), byNode[nodeName(2)].Status.PodIP
	url := "http://" + to + ":8080"
	if r := answers(t, from, url); r.Name != byNode[nodeName(2)].Name {
		t.Errorf("%s answers at the address of %s", r.Name, byNode[nodeName(2)].Name)
	}
	sourceIs(t, answers(t, from, url), byNode[nodeName(1)].Status.PodIP)
	manager := func(selector string, count int) {
		kubectl(t, "", "-n", "kube-system", "patch", "daemonset", "cloud-controller-manager", "-p",
			`{"spec":{"template":{"spec":{"nodeSelector":{"e2e/nowhere":`+selector+`}}}}}`)
		until(t, fmt.Sprintf("%d managers run", count), func(ctx context.Context) string {
			list, err := podsOf(ctx, metav1.NamespaceSystem, "app=cloud-controller-manager")
			if err != nil || len(list) != count {
				return fmt.Sprintf("%d, %v", len(list), err)
			}
			return ""
		})
	}
	manager(`"yes"`, 0)
	deleteRoutes(t)
	// The cloud cannot even tell the asker, as there is no way back to it either.
	until(t, "without route entries there is no way", func(ctx context.Context) string {
		if r, err := from.get(ctx, url); err == nil {
			return r.Name + " answers"
		}
		return ""
	})
	manager("null", nodeCount)
	answers(t, from, url)
}

// deleteRoutes deletes the custom entries of the system table, as somebody else might.
func deleteRoutes(t *testing.T) {
	t.Helper()
	client := cloudClient(t)
	entries, err := client.DescribeRouteEntries(t.Context(), "vtb-emulator", false)
	if err != nil || len(entries) != nodeCount {
		t.Fatalf("%d route entries, %v; want one for each machine", len(entries), err)
	}
	failed, err := client.DeleteRouteEntries(t.Context(), entries)
	if err := errors.Join(append(failed, err)...); err != nil {
		t.Fatal(err)
	}
}

// deleteRoutesOf removes the route entries that lead to an instance. A manager that runs may remove them at the same time, which refuses
// either call.
func deleteRoutesOf(t *testing.T, instance string) {
	t.Helper()
	client := cloudClient(t)
	ctx := context.WithoutCancel(t.Context())
	for deadline := time.Now().Add(eventDeadline); ; goOn(look) {
		entries, err := client.DescribeRouteEntries(ctx, "vtb-emulator", false)
		entries = slices.DeleteFunc(entries, func(e alicloud.RouteEntry) bool {
			return !slices.ContainsFunc(e.NextHops, func(hop alicloud.NextHop) bool { return hop.ID == instance })
		})
		if err == nil && len(entries) == 0 {
			return
		}
		if err == nil {
			var failed []error
			failed, err = client.DeleteRouteEntries(ctx, entries)
			err = errors.Join(append(failed, err)...)
		}
		if time.Now().After(deadline) {
			t.Errorf("the routes to %s cannot be deleted: %v", instance, err)
			return
		}
	}
}

// inPod finds the network of a pod.
func inPod(t *testing.T, pod corev1.Pod) place {
	t.Helper()
	p, err := placeOfPod(pod.Name)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// placeOfPod finds the network of a pod by one of its processes: the host sees those of all machines. A container's host name is the pod's.
func placeOfPod(pod string) (place, error) {
	environments, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		return place{}, err
	}
	for _, file := range environments {
		environment, _ := os.ReadFile(file) // a process that has ended is none
		if slices.Contains(strings.Split(string(environment), "\x00"), "HOSTNAME="+pod) {
			return place{path: filepath.Join(filepath.Dir(file), "ns", "net")}, nil
		}
	}
	return place{}, fmt.Errorf("no process of pod %s", pod)
}

// datagram asks over UDP.
func (p place) datagram(ctx context.Context, addr string) (reply, error) {
	c, err := p.dial(ctx, "udp", addr)
	if err != nil {
		return reply{}, err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		return reply{}, err
	}
	if _, err := io.WriteString(c, "who?"); err != nil {
		return reply{}, err
	}
	buffer := make([]byte, 2048)
	n, err := c.Read(buffer)
	if err != nil {
		return reply{}, err
	}
	var r reply
	_, err = fmt.Sscan(string(buffer[:n]), &r.Name, &r.Node, &r.Source)
	return r, err
}

// sourceIs checks which address a server has seen its client at.
func sourceIs(t *testing.T, r reply, want string) {
	t.Helper()
	if source, err := netip.ParseAddrPort(r.Source); err != nil || source.Addr().Unmap().String() != want {
		t.Errorf("%s on %s sees the client at %s, want %s", r.Name, r.Node, r.Source, want)
	}
}
