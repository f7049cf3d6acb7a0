package provider

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
)

// classChange is a Service that goes from one product to the other. The manager sees it before and after, and not the moments without a
// load balancer that the API server asks for in between.
type classChange struct {
	isNLB bool
	// byGate says that the annotation behind the gate asked for the NLB, not a class.
	byGate bool
	change func(*corev1.Service)
}

func classChanges() map[string]classChange {
	return map[string]classChange{
		"CLB to NLB": {change: func(svc *corev1.Service) {
			testkube.Class(nlb.Class)(svc)
			svc.Annotations = map[string]string{zoneMaps: "cn-hangzhou-a:vsw-a,cn-hangzhou-b:vsw-b"}
		}},
		"NLB to CLB": {isNLB: true, change: func(svc *corev1.Service) {
			svc.Spec.LoadBalancerClass = nil
			delete(svc.Annotations, zoneMaps)
		}},
		"NLB of the gate to CLB": {isNLB: true, byGate: true, change: func(svc *corev1.Service) { svc.Annotations = nil }},
	}
}

const zoneMaps = "service.beta.kubernetes.io/alibaba-cloud-loadbalancer-zone-maps"

// begin makes a Service of the first product that serves.
func (c classChange) begin(t *testing.T) *both {
	t.Helper()
	b := newBoth(t, 1)
	b.put("web", c.isNLB)
	if c.byGate {
		b.change("web", func(svc *corev1.Service) {
			svc.Spec.LoadBalancerClass = nil
			testkube.Annotation(annotation.Type.Key(), "nlb")(svc)
		})
	}
	b.settle()
	return b
}

// ends checks that the Service is on the other product, alone, and that its finalizers say so.
func (c classChange) ends(b *both) {
	b.t.Helper()
	b.settle()
	nlbs, clbs := testkit.Must(b.client.ListNLBs(b.t.Context(),
		alicloud.NLBQuery{}))(b.t), testkit.Must(b.client.DescribeLoadBalancers(b.t.Context(), alicloud.LoadBalancerQuery{}))(b.t)
	wantNLBs, wantCLBs := 1, 0
	if c.isNLB {
		wantNLBs, wantCLBs = 0, 1
	}
	svc := b.services()[0]
	if len(nlbs) != wantNLBs || len(clbs) != wantCLBs || slices.Contains(svc.Finalizers, nlb.Finalizer) == c.isNLB {
		b.t.Errorf("%d NLBs and %d CLBs, finalizers %v", len(nlbs), len(clbs), svc.Finalizers)
	}
	b.stop()
}

// TestClassChangeKilledAtEveryWrite: a Service goes from one product to the other, and the process is cut off and ends after each of its
// writes. What is left of the first load balancer goes, the second one is there once, and it serves.
func TestClassChangeKilledAtEveryWrite(t *testing.T) {
	t.Parallel()
	for name, c := range classChanges() {
		writes := 0
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := c.begin(t)
				before := b.server.Last()
				b.change("web", c.change)
				time.Sleep(3 * time.Minute)
				writes = b.writes(before)
				c.ends(b)
			})
		})
		for i := range writes {
			t.Run(fmt.Sprintf("%s/%d", name, i), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					b := c.begin(t)
					b.server.Fault(fmt.Sprintf(`{"action":"*","kind":"write","after":%d,"times":0,"drop":"before"}`, i))
					b.change("web", c.change)
					time.Sleep(time.Minute)
					b.stop()
					b.server.ClearFaults()
					b.stop = serveServices(b.t, b.server, b.kube, Settings{})
					c.ends(b)
				})
			})
		}
	}
}

// TestClassChangeWhileReadsFail: a Service goes from one product to the other while the cloud answers no read, or answers reads with
// nothing. Nothing is created or deleted on what is not known, and once reads succeed the change is made.
func TestClassChangeWhileReadsFail(t *testing.T) {
	t.Parallel()
	for name, c := range classChanges() {
		for how, fault := range map[string]string{
			"refused": `{"action":"*","kind":"read","times":0,"code":"ServiceUnavailable","status":503}`,
			"lost":    `{"action":"*","kind":"read","times":0,"drop":"after"}`,
		} {
			for _, restarted := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/%v", name, how, restarted), func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) {
						b := c.begin(t)
						if restarted {
							b.stop()
						}
						b.server.Fault(fault)
						before := b.server.Last()
						b.change("web", c.change)
						if restarted {
							b.stop = serveServices(b.t, b.server, b.kube, Settings{})
						}
						time.Sleep(5 * time.Minute)
						for _, call := range b.server.Calls(before) {
							if strings.HasPrefix(call.Action, "Create") || strings.HasPrefix(call.Action, "Delete") {
								t.Errorf("%s while nothing can be read", call.Action)
							}
						}
						b.server.ClearFaults()
						c.ends(b)
					})
				})
			}
		}
	}
}
