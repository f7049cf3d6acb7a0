package alicloud_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/emulatortest"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testcloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// TestListWhateverTheDefaultPage: a list has all load balancers, whichever size the cloud gives to pages of calls that name none.
func TestListWhateverTheDefaultPage(t *testing.T) {
	t.Parallel()
	for _, flipped := range [][]string{nil, {"slb.default-page"}} {
		t.Run(fmt.Sprint(flipped), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { // the rate window of a creation takes half a minute
				c, ctx := testcloud.New(t, emulator.Options{}), t.Context()
				c.Change(func(s *emulator.Settings) { s.Flipped, s.Quotas.LoadBalancers = flipped, 1000 })
				const all = 60 // the default page has 50, or 10
				for i := range all {
					lb := alicloud.LoadBalancer{Name: fmt.Sprint("lb-", i), AddressType: alicloud.AddressIntranet, VPCID: emulatortest.VPC,
						VSwitchID: "vsw-a"}
					testkit.Must(c.Client.CreateLoadBalancer(ctx, lb, lb.Name))(t)
				}
				if found := testkit.Must(c.Client.DescribeLoadBalancers(ctx, alicloud.LoadBalancerQuery{}))(t); len(found) != all {
					t.Errorf("%d load balancers, want %d", len(found), all)
				}
			})
		})
	}
}

// TestProbeWhateverTheCode: a key that may call an action is not said to lack it, whatever the cloud answers about the resource, which does
// not exist.
func TestProbeWhateverTheCode(t *testing.T) {
	t.Parallel()
	probed := []string{"nlb:TagResources", "ecs:ModifyNetworkInterfaceAttribute"}
	for _, flipped := range [][]string{nil, {"nlb.ResourceNotFound.ResourceId", "ecs.InvalidEniId.NotFound"}} {
		t.Run(fmt.Sprint(flipped), func(t *testing.T) {
			t.Parallel()
			c, met := newCloud(t), 0
			c.Change(func(s *emulator.Settings) { s.Flipped = flipped })
			for _, action := range alicloud.Actions() {
				if !slices.Contains(probed, action.Product+":"+action.Name) {
					continue
				}
				met++
				if permission, err := c.Probe(t.Context(), action); permission != alicloud.PermissionNotRefused {
					t.Errorf("%s: %s, %v", action.Name, permission, err)
				}
			}
			if met != len(probed) {
				t.Errorf("%d actions were probed, want %d", met, len(probed))
			}
		})
	}
}
