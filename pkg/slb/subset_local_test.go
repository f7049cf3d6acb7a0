package slb

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/backend"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/config"
)

// TestLocalBesideCluster: an instance can be behind 10 CLBs. 4 Services with externalTrafficPolicy Local have pods on all nodes, 8 with Cluster come before or
// afterwards. Each is served. Where those with Local come first, nothing is refused or written in the end, also by a new process.
func TestLocalBesideCluster(t *testing.T) {
	t.Parallel()
	const nodes, attachments, locals, clusters = 20, 10, 4, 8
	for name, localFirst := range map[string]bool{"Local first": true, "Cluster first": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFleetIn(t, cloud.Limits{LBsPerInstance: attachments}, config.Config{
					BackendSubset: backend.SubsetAuto, Quotas: smallQuotas(200, attachments),
				})
				defer func() { f.stop() }()
				for i := range nodes {
					f.createFleetNode(nodeName(i))
				}
				create := map[bool]func(){
					true: func() {
						for i := range locals {
							f.putLocal(fmt.Sprint("local", i), nodes)
						}
					},
					false: func() {
						for i := range clusters {
							f.put(testService(fmt.Sprint("web", i), 80))
						}
					},
				}
				create[localFirst]()
				f.rest()
				create[!localFirst]()
				time.Sleep(time.Hour)
				f.rest()
				f.emulator.NewCalls()
				f.replaceProcess()
				time.Sleep(time.Hour)
				f.rest()
				for i := range locals {
					if n := len(f.backendsOf(fmt.Sprint("local", i))["30080"]); n < nodes/4 || localFirst && n < nodes {
						t.Errorf("local%d has %d of %d nodes", i, n, nodes)
					}
				}
				for i := range clusters {
					if n := len(f.backendsOf(fmt.Sprint("web", i))["30080"]); n < nodes*(attachments-locals)/clusters/2 {
						t.Errorf("web%d has %d nodes", i, n)
					}
				}
				for _, call := range f.emulator.NewCalls() {
					if localFirst && !strings.HasPrefix(call.Action, "Describe") {
						t.Errorf("%s %s", call.Action, call.Code)
					}
				}
			})
		})
	}
}

// TestLocalOnFewNodesBesideCluster: everything fits, because the pods of 4 Services with Local are on 2 nodes each. A new process, which does not know that at
// first, takes no node from those with Cluster.
func TestLocalOnFewNodesBesideCluster(t *testing.T) {
	t.Parallel()
	const nodes, attachments, locals, clusters = 20, 10, 4, 8
	synctest.Test(t, func(t *testing.T) {
		f := newFleetIn(t, cloud.Limits{LBsPerInstance: attachments}, config.Config{
			BackendSubset: backend.SubsetAuto, Quotas: smallQuotas(200, attachments),
		})
		defer func() { f.stop() }()
		for i := range nodes {
			f.createFleetNode(nodeName(i))
		}
		for i := range locals {
			f.putLocalOn(fmt.Sprint("local", i), 2*i, 2*i+1)
		}
		for i := range clusters {
			f.put(testService(fmt.Sprint("web", i), 80))
		}
		time.Sleep(time.Hour)
		f.rest()
		for i := range clusters {
			if n := len(f.backendsOf(fmt.Sprint("web", i))["30080"]); n != nodes {
				t.Errorf("web%d has %d of %d nodes", i, n, nodes)
			}
		}
		f.emulator.NewCalls()
		f.replaceProcess()
		time.Sleep(time.Hour)
		f.rest()
		for _, call := range f.emulator.NewCalls() {
			if !strings.HasPrefix(call.Action, "Describe") {
				t.Errorf("%s %s", call.Action, call.Code)
			}
		}
	})
}

// putLocal creates a Service with externalTrafficPolicy Local that has a pod on each of the first so many nodes.
func (f *fleet) putLocal(name string, nodes int) {
	f.t.Helper()
	var on []int
	for i := range nodes {
		on = append(on, i)
	}
	f.putLocalOn(name, on...)
}

// putLocalOn creates a Service with externalTrafficPolicy Local that has a pod on each of the nodes.
func (f *fleet) putLocalOn(name string, on ...int) {
	f.t.Helper()
	svc := testService(name, 80)
	svc.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
	var endpoints []string
	for _, i := range on {
		endpoints = append(endpoints, fmt.Sprintf("10.244.%d.2@%s", i, nodeName(i)))
	}
	slice := testSlice(svc.Spec.Ports[0], endpoints...)
	slice.Name, slice.Labels = name, map[string]string{"kubernetes.io/service-name": name}
	testkit.Must(f.kube.DiscoveryV1().EndpointSlices(testNamespace).Create(f.t.Context(), slice, metav1.CreateOptions{}))(f.t)
	f.put(svc)
}
