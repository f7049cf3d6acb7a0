package account

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os/exec"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	cloudproviderapi "k8s.io/cloud-provider/api"
	"k8s.io/utils/ptr"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/nodes"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

const (
	// record is the ConfigMap that says what there was before, for a run that has to remove what an earlier one made.
	record = "before"
	// keyRoutes has the route entries that there were, one "table cidr" per line; keyJoined has the name of the Node that joins.
	keyRoutes, keyJoined = "routes", "joined"
	// web is the workload behind all Services.
	web     = "web"
	webPort = 8080
	// leaseFresh is how young the renewal of a lease is while its holder lives.
	leaseFresh = time.Minute
)

// Check says why the stories cannot run. It changes nothing.
func (s *Suite) Check(ctx context.Context) error {
	return all(ctx, s.belongTogether, s.isFree, s.servesNobody, func(ctx context.Context) error {
		if err := s.orphans(ctx); err != nil {
			return fmt.Errorf("before the scenarios: %w", err)
		}
		return nil
	})
}

// belongTogether refuses a kubeconfig and a cloud-config of different clusters, and either one that leads nowhere.
func (s *Suite) belongTogether(ctx context.Context) error {
	list, err := s.o.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("KUBECONFIG: list the Nodes: %w", err)
	}
	vSwitches, err := s.o.Cloud.DescribeVSwitches(ctx, s.o.VPC)
	if err != nil {
		return fmt.Errorf("CLOUD_CONFIG: read the vSwitches of the VPC %s: %w", s.o.VPC, err)
	}
	if len(vSwitches) == 0 {
		return fmt.Errorf("CLOUD_CONFIG: %w: the VPC %s has no vSwitch in the region: set region and vpcid to those of the cluster", errMissing,
			s.o.VPC)
	}
	for i := range list.Items {
		is, err := s.isInstance(ctx, &list.Items[i])
		if err != nil {
			return fmt.Errorf("find the instance of the Node %s: %w", list.Items[i].Name, err)
		}
		if is {
			return nil
		}
	}
	return fmt.Errorf("%w: none of the %d Nodes is an instance of the VPC %s: KUBECONFIG and CLOUD_CONFIG are not of the same cluster",
		errMissing, len(list.Items), s.o.VPC)
}

// isFree refuses while there is something of another run.
func (s *Suite) isFree(ctx context.Context) error {
	_, err := s.o.Client.CoreV1().Namespaces().Get(ctx, Namespace, metav1.GetOptions{})
	switch {
	case err == nil:
		return fmt.Errorf("the namespace %s exists: an earlier run was killed, or another one runs: make e2e-cloud CLEAN=yes removes what it made", Namespace)
	case !apierrors.IsNotFound(err):
		return fmt.Errorf("read the namespace %s: %w", Namespace, err)
	}
	return nil
}

// servesNobody refuses a cluster that is in use: the stories start and kill managers.
func (s *Suite) servesNobody(ctx context.Context) error {
	services, err := s.o.Client.CoreV1().Services("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list the Services: %w", err)
	}
	for i := range services.Items {
		if svc := &services.Items[i]; svc.Spec.Type == corev1.ServiceTypeLoadBalancer {
			return fmt.Errorf("the Service %s/%s has a load balancer: the scenarios start and kill managers, which must not serve other Services",
				svc.Namespace, svc.Name)
		}
	}
	for _, name := range []string{"cloud-controller-manager", "ccm"} {
		lease, err := s.o.Client.CoordinationV1().Leases(metav1.NamespaceSystem).Get(ctx, name, metav1.GetOptions{})
		if err == nil && ptr.Deref(lease.Spec.HolderIdentity, "") != "" && lease.Spec.RenewTime != nil &&
			time.Since(lease.Spec.RenewTime.Time) < leaseFresh {
			return fmt.Errorf("%s holds the lease kube-system/%s: end the cloud controller manager of the cluster first", *lease.Spec.HolderIdentity,
				name)
		}
	}
	return nil
}

// orphans asks the program whether something has no Service any more.
func (s *Suite) orphans(ctx context.Context) error {
	m := s.o.Manager
	cmd := exec.CommandContext(ctx, m.Program, "orphans", "--cloud-provider=alicloud", "--cloud-config="+m.CloudConfig,
		"--kubeconfig="+m.Kubeconfig,
		"--configure-cloud-routes=false")
	cmd.Env = append(cmd.Environ(), m.Environment...)
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("the command orphans: %w: %s", described(err), out)
	}
	return nil
}

// prepare makes the namespace with its record and the workload, and starts the manager.
func (s *Suite) prepare(ctx context.Context) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: Namespace}}
	if _, err := s.o.Client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("make the namespace %s: %w", Namespace, err)
	}
	routes, err := s.routesIn(ctx)
	if err != nil {
		return err
	}
	before := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: record},
		Data: map[string]string{keyRoutes: strings.Join(names(routes), "\n")}}
	if _, err := s.o.Client.CoreV1().ConfigMaps(Namespace).Create(ctx, before, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("note what there is: %w", err)
	}
	return all(ctx, s.start, s.nodesAreInitialized, s.deploy)
}

// routesIn are the entries within the range of pods in all tables of the VPC.
func (s *Suite) routesIn(ctx context.Context) ([]alicloud.RouteEntry, error) {
	if s.o.ClusterCIDR == "" {
		return nil, nil
	}
	within, err := netip.ParsePrefix(s.o.ClusterCIDR)
	if err != nil {
		return nil, fmt.Errorf("the range of pods: %w", err)
	}
	tables, err := s.o.Cloud.DescribeRouteTables(ctx, s.o.VPC)
	if err != nil {
		return nil, fmt.Errorf("read the route tables: %w", err)
	}
	var found []alicloud.RouteEntry
	for i := range tables {
		entries, err := s.o.Cloud.DescribeRouteEntries(ctx, tables[i].ID, false)
		if err != nil {
			return nil, fmt.Errorf("read the route table %s: %w", tables[i].ID, err)
		}
		found = append(found, slices.DeleteFunc(entries, func(e alicloud.RouteEntry) bool {
			cidr, err := netip.ParsePrefix(e.CIDR)
			return err != nil || e.Type != alicloud.RouteTypeCustom || cidr.Bits() < within.Bits() || !within.Contains(cidr.Addr())
		})...)
	}
	return found, nil
}

// names are the entries as the record has them.
func names(routes []alicloud.RouteEntry) []string {
	var all []string
	for i := range routes {
		all = append(all, nameOf(&routes[i]))
	}
	return all
}

func nameOf(e *alicloud.RouteEntry) string { return e.TableID + " " + e.CIDR }

// nodesAreInitialized waits until the manager has taken its taints off every Node that is an instance of the VPC. Others, such as machines
// on premises and virtual nodes, can keep them.
func (s *Suite) nodesAreInitialized(ctx context.Context) error {
	return s.await(ctx, "the Nodes are initialized", func(ctx context.Context) string {
		list, err := s.o.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return err.Error()
		}
		done := 0
		for i := range list.Items {
			node := &list.Items[i]
			missing := uninitialized(node)
			switch {
			case missing == "" && instanceOf(node) != "":
				done++
			case missing == "":
			default:
				if is, err := s.isInstance(ctx, node); err != nil || is {
					return fmt.Sprintf("%s, %v", missing, err)
				}
			}
		}
		if done == 0 {
			return "no Node is an instance of the VPC that the manager has initialized"
		}
		return ""
	})
}

// isInstance reports whether a Node is an instance of the VPC, or can turn out to be one because it has no address yet.
func (s *Suite) isInstance(ctx context.Context, node *corev1.Node) (bool, error) {
	var addresses []string
	for _, address := range nodes.OwnAddresses(node) {
		if address.Is4() {
			addresses = append(addresses, address.String())
		}
	}
	if len(addresses) == 0 {
		return true, nil
	}
	found, err := s.o.Cloud.DescribeInstances(ctx, alicloud.InstanceQuery{PrivateIPs: addresses, VPCID: s.o.VPC})
	return len(found) > 0, err //nolint:wrapcheck // it names the action
}

func uninitialized(node *corev1.Node) string {
	for _, taint := range node.Spec.Taints {
		if taint.Key == cloudproviderapi.TaintExternalCloudProvider || taint.Key == corev1.TaintNodeNetworkUnavailable {
			return node.Name + " has the taint " + taint.Key
		}
	}
	return ""
}

// deploy makes two pods, on different nodes where two accept pods. That is demanded then: the scheduler may still know a taint that is gone,
// and would otherwise take the other node for both.
func (s *Suite) deploy(ctx context.Context) error {
	list, err := s.o.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list the Nodes: %w", err)
	}
	spread := corev1.ScheduleAnyway
	if len(slices.DeleteFunc(list.Items, refusesPods)) > 1 {
		spread = corev1.DoNotSchedule
	}
	labels := map[string]string{"app": web}
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: web},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](2), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					TerminationGracePeriodSeconds: ptr.To[int64](1),
					TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{
						MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: spread,
						LabelSelector: &metav1.LabelSelector{MatchLabels: labels},
					}},
					Containers: []corev1.Container{{
						Name: web, Image: s.o.Image, Args: []string{"netexec", fmt.Sprintf("--http-port=%d", webPort)},
						Ports: []corev1.ContainerPort{{ContainerPort: webPort}},
					}},
				},
			},
		},
	}
	if _, err := s.o.Client.AppsV1().Deployments(Namespace).Create(ctx, deployment, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("make the Deployment: %w", err)
	}
	return s.await(ctx, "two pods are ready", func(ctx context.Context) string {
		pods, err := s.pods(ctx)
		if err != nil || len(pods) != 2 {
			return fmt.Sprintf("%d, %v", len(pods), err)
		}
		return ""
	})
}

// refusesPods reports whether the scheduler puts no pod without tolerations on a Node.
func refusesPods(node corev1.Node) bool {
	return node.Spec.Unschedulable || slices.ContainsFunc(node.Spec.Taints, func(taint corev1.Taint) bool {
		return taint.Effect != corev1.TaintEffectPreferNoSchedule
	})
}

// pods are the ready ones of the workload.
func (s *Suite) pods(ctx context.Context) ([]corev1.Pod, error) {
	list, err := s.o.Client.CoreV1().Pods(Namespace).List(ctx, metav1.ListOptions{LabelSelector: "app=" + web})
	if err != nil {
		return nil, fmt.Errorf("list the pods: %w", err)
	}
	return slices.DeleteFunc(list.Items, func(pod corev1.Pod) bool {
		return pod.DeletionTimestamp != nil || !slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		})
	}), nil
}

// errMissing is the error of what is not as it should be at once.
var errMissing = errors.New("not as expected")
