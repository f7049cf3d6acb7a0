package account

import (
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
)

const annotations = "service.beta.kubernetes.io/alibaba-cloud-loadbalancer-"

// internet are the annotations of a Service that is reached from outside.
func internet() map[string]string {
	return map[string]string{annotations + "address-type": "internet"}
}

// clb: a Service on a CLB. Its second port is added while no manager runs.
func (s *Suite) clb(ctx context.Context) error {
	if err := s.create(ctx, "clb", "", internet()); err != nil {
		return err
	}
	address, id, err := s.served(ctx, "clb")
	if err != nil {
		return err
	}
	if err := all(ctx, s.answered(address, 80), s.kill, s.addPort("clb", 81), s.start, s.answered(address, 81),
		s.answered(address, 80)); err != nil {
		return err
	}
	return s.removed(ctx, "clb", func(ctx context.Context) error {
		_, err := s.o.Cloud.DescribeLoadBalancer(ctx, id)
		return err //nolint:wrapcheck // judged, not shown
	})
}

// nlb: a Service on an NLB, under its name.
func (s *Suite) nlb(ctx context.Context) error {
	asked := internet()
	asked[annotations+"zone-maps"] = s.o.Zones
	if err := s.create(ctx, "nlb", nlb.Class, asked); err != nil {
		return err
	}
	address, id, err := s.served(ctx, "nlb")
	if err != nil {
		return err
	}
	if err := s.answered(address, 80)(ctx); err != nil {
		return err
	}
	return s.removed(ctx, "nlb", func(ctx context.Context) error {
		_, err := s.o.Cloud.GetNLB(ctx, id)
		return err //nolint:wrapcheck // judged, not shown
	})
}

// routes: pods of two nodes reach each other, and every node has its entry.
func (s *Suite) routes(ctx context.Context) error {
	err := s.await(ctx, "every Node has its route entry", func(ctx context.Context) string {
		entries, err := s.routesIn(ctx)
		if err != nil {
			return err.Error()
		}
		nodes, err := s.o.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return err.Error()
		}
		for i := range nodes.Items {
			if node := &nodes.Items[i]; instanceOf(node) != "" && !routed(entries, node.Spec.PodCIDR, instanceOf(node)) {
				return fmt.Sprintf("%s has none for %s", node.Name, node.Spec.PodCIDR)
			}
		}
		return ""
	})
	if err != nil {
		return err
	}
	return s.reachEachOther(ctx)
}

// reachEachOther asks each pod from the other one.
func (s *Suite) reachEachOther(ctx context.Context) error {
	pods, err := s.pods(ctx)
	if err != nil {
		return err
	}
	if len(pods) != 2 || pods[0].Spec.NodeName == pods[1].Spec.NodeName {
		return fmt.Errorf("%w: the pods are on one node: the scenario needs two nodes that accept pods", errMissing)
	}
	for i := range pods {
		from, to := &pods[i], &pods[1-i]
		url := "http://" + net.JoinHostPort(to.Status.PodIP, strconv.Itoa(webPort)) + "/hostname"
		err := s.await(ctx, fmt.Sprintf("a pod on %s reaches one on %s", from.Spec.NodeName, to.Spec.NodeName), func(ctx context.Context) string {
			if got, err := s.o.Cluster.InPod(ctx, from, url); err != nil || got != to.Name {
				return fmt.Sprintf("%q answers, %v", got, err)
			}
			return ""
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// instanceOf is the instance of a Node; "" for one that is none of the region's.
func instanceOf(node *corev1.Node) string {
	_, id, _ := strings.Cut(strings.TrimPrefix(node.Spec.ProviderID, "alicloud://"), ".")
	if !strings.HasPrefix(id, "i-") {
		return ""
	}
	return id
}

func routed(entries []alicloud.RouteEntry, cidr, instance string) bool {
	return slices.ContainsFunc(entries, func(e alicloud.RouteEntry) bool {
		return e.CIDR == cidr && e.Status == alicloud.RouteAvailable && slices.ContainsFunc(e.NextHops, func(h alicloud.NextHop) bool {
			return h.ID == instance
		})
	})
}

// joined is the Node that the story of nodes lets join.
const joined = "alicloud-e2e"

// node: an instance joins and leaves.
func (s *Suite) node(ctx context.Context) error {
	if err := s.create(ctx, "node", "", internet()); err != nil {
		return err
	}
	_, id, err := s.served(ctx, "node")
	if err != nil {
		return err
	}
	if err = s.noteJoining(ctx); err != nil {
		return err
	}
	if err = s.o.Cluster.Join(ctx, joined); err != nil {
		return fmt.Errorf("let an instance join: %w", err)
	}
	instance, cidr := "", ""
	err = s.await(ctx, "the Node is a backend server", func(ctx context.Context) string {
		node, failed := s.o.Client.CoreV1().Nodes().Get(ctx, joined, metav1.GetOptions{})
		if failed != nil {
			return failed.Error()
		}
		if missing := uninitialized(node); missing != "" {
			return missing
		}
		instance, cidr = instanceOf(node), node.Spec.PodCIDR
		return s.behind(ctx, id, instance, true)
	})
	if err != nil {
		return err
	}
	if err := s.o.Cluster.Release(ctx, joined); err != nil {
		return fmt.Errorf("release the instance: %w", err)
	}
	if err := s.await(ctx, "neither Node nor backend server nor route is left", func(ctx context.Context) string {
		return s.left(ctx, id, instance, cidr)
	}); err != nil {
		return err
	}
	return s.removed(ctx, "node", func(ctx context.Context) error {
		_, err := s.o.Cloud.DescribeLoadBalancer(ctx, id)
		return err //nolint:wrapcheck // judged, not shown
	})
}

// left says what is left of a Node whose instance was released.
func (s *Suite) left(ctx context.Context, id, instance, cidr string) string {
	if _, err := s.o.Client.CoreV1().Nodes().Get(ctx, joined, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		return fmt.Sprintf("the Node is there, %v", err)
	}
	if entries, err := s.routesIn(ctx); err != nil || cidr != "" && routed(entries, cidr, instance) {
		return fmt.Sprintf("the route entry is there, %v", err)
	}
	return s.behind(ctx, id, instance, false)
}

// behind says what is wrong while an instance is a backend server of a CLB and should not be, or the other way round.
func (s *Suite) behind(ctx context.Context, id, instance string, want bool) string {
	groups, err := s.o.Cloud.DescribeVServerGroups(ctx, id)
	if err != nil {
		return err.Error()
	}
	for i := range groups {
		group, err := s.o.Cloud.DescribeVServerGroup(ctx, groups[i].ID)
		if err != nil {
			return err.Error()
		}
		if slices.ContainsFunc(group.Backends, func(b alicloud.Backend) bool { return b.ServerID == instance }) != want {
			return fmt.Sprintf("backend servers of %s: %v", group.Name, group.Backends)
		}
	}
	return ""
}

// create makes a Service in front of the workload.
func (s *Suite) create(ctx context.Context, name, class string, asked map[string]string) error {
	svc := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: asked},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeLoadBalancer, Selector: map[string]string{"app": web},
			Ports: []corev1.ServicePort{{Name: "http-80", Port: 80, TargetPort: intstr.FromInt32(webPort)}},
		},
	}
	if class != "" {
		svc.Spec.LoadBalancerClass = &class
	}
	if _, err := s.o.Client.CoreV1().Services(Namespace).Create(ctx, svc, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("make the Service %s: %w", name, err)
	}
	return nil
}

// addPort adds a port to a Service.
func (s *Suite) addPort(name string, port int32) func(context.Context) error {
	return func(ctx context.Context) error {
		patch := fmt.Sprintf(`[{"op":"add","path":"/spec/ports/-","value":{"name":"http-%d","port":%d,"targetPort":%d}}]`, port, port, webPort)
		if _, err := s.o.Client.CoreV1().Services(Namespace).Patch(ctx, name, types.JSONPatchType, []byte(patch),
			metav1.PatchOptions{}); err != nil {
			return fmt.Errorf("add a port to the Service %s: %w", name, err)
		}
		return nil
	}
}

// served waits for the address of a Service, and returns it with the id of the load balancer.
func (s *Suite) served(ctx context.Context, name string) (address, id string, err error) {
	err = s.await(ctx, "the Service "+name+" has an address", func(ctx context.Context) string {
		svc, failed := s.o.Client.CoreV1().Services(Namespace).Get(ctx, name, metav1.GetOptions{})
		if failed != nil {
			return failed.Error()
		}
		for _, shown := range svc.Status.LoadBalancer.Ingress {
			address, id = shown.IP+shown.Hostname, svc.Labels[driver.LabelLoadBalancerID]
		}
		if address == "" || id == "" {
			return "no address"
		}
		return ""
	})
	return address, id, err
}

// answered waits until every pod has answered at the address.
func (s *Suite) answered(address string, port int) func(context.Context) error {
	return func(ctx context.Context) error {
		url := "http://" + net.JoinHostPort(address, strconv.Itoa(port)) + "/hostname"
		seen := map[string]bool{}
		return s.await(ctx, "every pod answers at "+url, func(ctx context.Context) string {
			body, err := s.o.Cluster.Outside(ctx, url)
			if err != nil {
				return err.Error()
			}
			seen[body] = true
			pods, err := s.pods(ctx)
			if err != nil || len(pods) == 0 {
				return fmt.Sprintf("no pods, %v", err)
			}
			for i := range pods {
				if !seen[pods[i].Name] {
					return fmt.Sprintf("%s has not, of %v", pods[i].Name, slices.Sorted(maps.Keys(seen)))
				}
			}
			return ""
		})
	}
}

// removed deletes a Service, and checks that reading its load balancer then finds nothing.
func (s *Suite) removed(ctx context.Context, name string, read func(context.Context) error) error {
	if err := s.o.Client.CoreV1().Services(Namespace).Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		return fmt.Errorf("delete the Service %s: %w", name, err)
	}
	return s.await(ctx, "the Service "+name+" and its load balancer are gone", func(ctx context.Context) string {
		if _, err := s.o.Client.CoreV1().Services(Namespace).Get(ctx, name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Sprintf("the Service is there, %v", err)
		}
		if err := read(ctx); !alicloud.IsNotFound(err) {
			return fmt.Sprintf("the load balancer is there, %v", err)
		}
		return ""
	})
}
