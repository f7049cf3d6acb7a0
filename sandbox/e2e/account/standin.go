package account

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
)

// StandIn stands in for the official CCM where that cannot run: it makes for a plain Service with a CLB what that program (v2.14) makes,
// and leaves alone what it finds. What that program would write to each kind of Service is tested in package slb.
type StandIn struct {
	Client kubernetes.Interface
	Cloud  *alicloud.Client
	// ClusterID ends all marks.
	ClusterID string
	// Poll is the time between two rounds.
	Poll time.Duration

	mu    sync.Mutex
	stop  context.CancelFunc // nil while it does not run; guarded by mu
	group sync.WaitGroup
	// failed is why the last round did not come to its end; guarded by mu
	failed error
}

// Run lets it run, or ends it and returns why its last round failed.
func (o *StandIn) Run(ctx context.Context, run bool) error {
	o.mu.Lock()
	stop := o.stop
	o.stop = nil
	if run {
		life, cancel := context.WithCancel(context.WithoutCancel(ctx))
		o.stop = cancel
		o.group.Go(func() { o.rounds(life) })
	}
	o.mu.Unlock()
	if stop == nil {
		return nil
	}
	stop()
	if !run {
		o.group.Wait()
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.failed
}

func (o *StandIn) rounds(ctx context.Context) {
	for ctx.Err() == nil {
		err := o.round(ctx)
		if ctx.Err() != nil {
			return
		}
		o.mu.Lock()
		o.failed = err
		o.mu.Unlock()
		select {
		case <-ctx.Done():
		case <-time.After(o.Poll):
		}
	}
}

func (o *StandIn) round(ctx context.Context) error {
	services, err := o.Client.CoreV1().Services("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list the Services: %w", err)
	}
	var errs []error
	for i := range services.Items {
		if svc := &services.Items[i]; svc.Spec.Type == corev1.ServiceTypeLoadBalancer && svc.Spec.LoadBalancerClass == nil &&
			svc.DeletionTimestamp == nil {
			errs = append(errs, o.serve(ctx, svc))
		}
	}
	return errors.Join(errs...)
}

// serve makes the CLB where the tag finds none, and writes to the Service what says so.
func (o *StandIn) serve(ctx context.Context, svc *corev1.Service) error {
	if svc.Labels[driver.LabelHash] != "" {
		return nil
	}
	tag := alicloud.Tag{Key: "kubernetes.do.not.delete", Value: ("a" + strings.ReplaceAll(string(svc.UID), "-", ""))[:32]}
	found, err := o.Cloud.DescribeLoadBalancers(ctx, alicloud.LoadBalancerQuery{Tag: &tag})
	if err != nil {
		return fmt.Errorf("find the CLB: %w", err)
	}
	if len(found) == 0 {
		lb, failed := o.make(ctx, svc, tag)
		if failed != nil {
			return fmt.Errorf("make the CLB: %w", failed)
		}
		found = append(found, lb)
	}
	if !slices.Contains(svc.Finalizers, "service.k8s.alibaba/resources") {
		svc.Finalizers = append(svc.Finalizers, "service.k8s.alibaba/resources")
	}
	if svc.Labels == nil {
		svc.Labels = map[string]string{}
	}
	svc.Labels[driver.LabelLoadBalancerID] = found[0].ID
	services := o.Client.CoreV1().Services(svc.Namespace)
	if svc, err = services.Update(ctx, svc, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("write the Service: %w", err)
	}
	svc.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: found[0].Address}}
	if svc, err = services.UpdateStatus(ctx, svc, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("write the status of the Service: %w", err)
	}
	svc.Labels[driver.LabelHash] = "0"
	if _, err = services.Update(ctx, svc, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("write the hash of the Service: %w", err)
	}
	return nil
}

// make makes the CLB with a group and a listener for each port.
func (o *StandIn) make(ctx context.Context, svc *corev1.Service, tag alicloud.Tag) (alicloud.LoadBalancer, error) {
	lb, err := o.Cloud.CreateLoadBalancer(ctx, alicloud.LoadBalancer{
		Name: tag.Value, AddressType: alicloud.AddressInternet, InstanceChargeType: alicloud.PayByCLCU, DeleteProtection: alicloud.ProtectionOn,
		ModificationProtection: alicloud.ConsoleProtection, ModificationProtectionReason: "managed.by.ack",
		Tags: []alicloud.Tag{tag, {Key: "ack.aliyun.com", Value: o.ClusterID}},
	}, "")
	if err != nil {
		return lb, err //nolint:wrapcheck // by the caller
	}
	nodes, err := o.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return lb, err //nolint:wrapcheck // by the caller
	}
	for _, port := range svc.Spec.Ports {
		mark := func(port int32) string {
			return strings.Join([]string{"k8s", strconv.Itoa(int(port)), svc.Name, svc.Namespace, o.ClusterID}, "/")
		}
		var backends []alicloud.Backend
		for i := range nodes.Items {
			if id := instanceOf(&nodes.Items[i]); id != "" {
				backends = append(backends, alicloud.Backend{
					BackendKey: alicloud.BackendKey{Type: alicloud.BackendECS, ServerID: id, Port: int(port.NodePort)}, Weight: 100,
					Description: mark(port.NodePort),
				})
			}
		}
		group, err := o.Cloud.CreateVServerGroup(ctx, lb.ID, mark(port.NodePort), backends)
		if err != nil {
			return lb, err //nolint:wrapcheck // by the caller
		}
		listener := alicloud.Listener{
			ListenerKey: alicloud.ListenerKey{Port: int(port.Port), Protocol: "tcp"}, Description: mark(port.Port), VServerGroupID: group,
			Attributes: alicloud.Attributes{"Scheduler": "rr"},
		}
		if err := o.Cloud.CreateListener(ctx, lb.ID, listener); err != nil {
			return lb, err //nolint:wrapcheck // by the caller
		}
		if err := o.Cloud.StartListener(ctx, lb.ID, listener.ListenerKey); err != nil {
			return lb, err //nolint:wrapcheck // by the caller
		}
	}
	return lb, nil
}
