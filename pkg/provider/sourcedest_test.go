package provider

import (
	"context"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/vpcroute"
)

// TestChecksStayOff: the controllers as the program makes them, with routes and without, switch a source/destination check off, and again
// within the period of the flag after somebody has switched it on.
func TestChecksStayOff(t *testing.T) {
	t.Parallel()
	for name, build := range map[string]func(*Cloud) (*vpcroute.Controller, error){
		"routes": (*Cloud).RouteController, "without routes": (*Cloud).UnroutedController,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := startCloud(t)
			server.Put("i-1", `{"PrivateIpAddress": "10.1.0.9", "SourceDestCheck": true}`)
			node := &corev1.Node{
				ObjectMeta: metav1.ObjectMeta{Name: "n1"},
				Spec:       corev1.NodeSpec{ProviderID: "cn-hangzhou.i-1", PodCIDR: "10.244.3.0/24", PodCIDRs: []string{"10.244.3.0/24"}},
				Status:     corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.1.0.9"}}},
			}
			config := keys
			config.VPCID = "vpc-emulator"
			switchedOff := func(times int) wait.ConditionWithContextFunc {
				return func(context.Context) (bool, error) {
					n := 0
					for _, call := range server.Calls(0) {
						if call.Action == "ModifyNetworkInterfaceAttribute" {
							n++
						}
					}
					return n >= times, nil
				}
			}
			withCloud(t, server, config, Settings{RoutePeriod: time.Second}, func(ctx context.Context, cloud *Cloud) {
				controller := testkit.Must(build(cloud))(t)
				ctx, stop := context.WithCancel(ctx)
				var running sync.WaitGroup
				running.Go(func() { controller.Run(ctx) })
				for times := range 2 {
					if err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, time.Minute, true, switchedOff(times+1)); err != nil {
						t.Errorf("the check is switched off %d times, want %d: %v", times, times+1, err)
					}
					server.Put("i-1", `{"SourceDestCheck": true}`)
				}
				stop()
				running.Wait()
			}, node)
		})
	}
}
