package alicloud_test

import (
	"testing"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/emulatortest"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// TestTryNLBListener: a dry run says whether the cloud would make a listener, and makes none.
func TestTryNLBListener(t *testing.T) {
	t.Parallel()
	c, ctx := newCloud(t), t.Context()
	id := testkit.Must(c.CreateNLB(ctx, newNLB("a0123"), "token-1"))(t)
	group, _, err := c.CreateNLBGroup(ctx,
		alicloud.NLBGroup{Name: "k8s.80.TCP.web.default.c1", VPCID: emulatortest.VPC, Protocol: alicloud.NLBTCP}, "token-2")
	testkit.Check(t, err)
	l := alicloud.NLBListener{LoadBalancerID: id, Port: 80, Protocol: alicloud.NLBTCP,
		NLBListenerSettings: alicloud.NLBListenerSettings{ServerGroupID: &group}}
	for range 2 {
		if err := c.TryNLBListener(ctx, l); err != nil {
			t.Errorf("one that it would make: %v", err)
		}
	}
	none := l
	none.NLBListenerSettings.ServerGroupID = new("sgp-none")
	if err := c.TryNLBListener(ctx, none); !alicloud.IsNotFound(err) {
		t.Errorf("to a group that is not there: %v", err)
	}
	if found := testkit.Must(c.ListNLBListeners(ctx, []string{id}))(t); len(found) > 0 {
		t.Errorf("listeners %v", found)
	}
	_, _, err = c.CreateNLBListener(ctx, l, "token-3")
	testkit.Check(t, err)
	if err := c.TryNLBListener(ctx, l); !alicloud.IsDuplicate(err) {
		t.Errorf("on a port that is in use: %v", err)
	}
}
