package nlb

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/emulatortest"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
)

// passes makes passes over a Service as they become due for a time, also where they fail, with the backoff of the controller.
func (w *world) passes(name string, over time.Duration) {
	w.t.Helper()
	testkit.Passes(over, func() (time.Duration, error) { return w.Reconcile(w.t.Context(), w.get(name)) })
}

// TestServersComeWhileNoneCanLeave: the cloud does not let a server leave whose node is gone. Others come all the same, and a new port is
// served.
func TestServersComeWhileNoneCanLeave(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]string{"refused": `"code":"IllegalParam.Servers","status":400`,
		"forbidden": `"code":"NoPermission","status":403`, "job fails": `"job":"failed"`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, w *world) {
				w.serve(2, ports(tcpPort(80)))
				w.account.Fault(`{"times":0,"action":"RemoveServersFromServerGroup",` + fault + `}`)
				w.deleteNode("n1")
				w.passes("web", time.Minute)
				w.addNodes("n3")
				w.passes("web", 10*time.Minute)
				another := tcpPort(8080)
				another.NodePort = 30080
				w.change("web", ports(tcpPort(80), another))
				w.passes("web", 10*time.Minute)
				want := []string{"TCP:80 i-n1:30080=100 i-n2:30080=100 i-n3:30080=100", "TCP:8080 i-n1:30080=100 i-n2:30080=100 i-n3:30080=100"}
				if got := w.listeners(w.balancer("web").ID); !slices.Equal(got, want) {
					t.Errorf("listeners %v, want %v", got, want)
				}
			})
		})
	}
}

// TestUnreadSecurityGroupStaysJoined: a new process cannot read the security group of the source ranges, and the Service names others. The
// load balancer would be open to everybody without it.
func TestUnreadSecurityGroupStaysJoined(t *testing.T) {
	t.Parallel()
	for _, named := range []bool{true, false} {
		inWorld(t, func(t *testing.T, w *world) {
			other := testkit.Must(w.account.Client.CreateSecurityGroup(t.Context(),
				alicloud.SecurityGroup{VPCID: emulatortest.VPC, Type: alicloud.SecurityGroupEnterprise}, "other"))(t)
			change := edits(testkube.TCP(80), func(svc *corev1.Service) { svc.Spec.LoadBalancerSourceRanges = []string{"192.0.2.0/24"} })
			if named {
				change = append(change, with(annotation.SecurityGroupIDs, other))
			}
			w.serve(1, change...)
			before := w.balancer("web").SecurityGroups
			w.restart()
			w.account.Fault(`{"times":0,"action":"DescribeSecurityGroups","code":"ServiceUnavailable","status":503}`)
			w.calls()
			w.passes("web", 10*time.Minute)
			if after := w.balancer("web").SecurityGroups; !slices.Equal(after, before) {
				t.Errorf("security groups %v, want %v", after, before)
			}
			if got := writes(w.calls()); len(got) > 0 {
				t.Errorf("writes %v", got)
			}
			w.addNodes("n2")
			w.passes("web", 10*time.Minute)
			if got, want := w.listeners(w.balancer("web").ID), []string{"TCP:80 i-n1:30080=100 i-n2:30080=100"}; !slices.Equal(got, want) {
				t.Errorf("listeners %v, want %v", got, want)
			}
		})
	}
}
