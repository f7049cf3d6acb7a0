package alicloud_test

import (
	"slices"
	"testing"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// TestAttributesWithSeveralSpellings: values that mean the same compare equal, so that no pass writes what is there.
func TestAttributesWithSeveralSpellings(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, a, b string
		same       bool
	}{
		{alicloud.AttributeACLIDs, "acl-2,acl-1", "acl-1,acl-2", true},
		{alicloud.AttributeACLIDs, "acl-1", "acl-1,acl-2", false},
		{alicloud.AttributeACLStatus, "", alicloud.Off, true},
		{alicloud.AttributeHealthCheckConnectPort, "0", alicloud.BackendPort, true},
		{alicloud.AttributeHealthCheckConnectPort, "80", "", false},
		{alicloud.AttributeScheduler, "", alicloud.SchedulerRoundRobin, false},
	} {
		a, b := alicloud.Attributes{test.name: test.a}, alicloud.Attributes{test.name: test.b}
		if got := a.Same(test.name, b); got != test.same {
			t.Errorf("%s: %q and %q are the same: %v, want %v", test.name, test.a, test.b, got, test.same)
		}
	}
}

func TestAttributeAccessors(t *testing.T) {
	t.Parallel()
	a := alicloud.Attributes{
		alicloud.AttributeACLIDs: "acl-2,acl-1", alicloud.AttributeListenerForward: alicloud.On, alicloud.AttributeForwardPort: "443",
	}
	if port, ok := a.ForwardPort(); port != 443 || !ok {
		t.Errorf("forward port %d, %v", port, ok)
	}
	if !slices.Equal(a.ACLIDs(), []string{"acl-1", "acl-2"}) || a.On(alicloud.AttributeACLStatus) {
		t.Errorf("access lists %v, on: %v", a.ACLIDs(), a.On(alicloud.AttributeACLStatus))
	}
	if _, ok := (alicloud.Attributes{alicloud.AttributeForwardPort: "443"}).ForwardPort(); ok {
		t.Error("a listener that does not redirect has a forward port")
	}
}
