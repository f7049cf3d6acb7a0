package alicloud_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testcloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// TestRefusalNamesThePermission: the text of a refused call names the permission as policies spell it, with a policy that can be pasted.
func TestRefusalNamesThePermission(t *testing.T) {
	t.Parallel()
	config := cloud.DefaultConfig()
	config.AccessKeys[0].Permissions = []string{"ecs:*"}
	client := testcloud.New(t, emulator.Options{Config: config}).Client
	_, clb := client.CreateLoadBalancer(t.Context(), alicloud.LoadBalancer{Name: "web", AddressType: alicloud.AddressInternet}, "token")
	_, vpc := client.DescribeVSwitches(t.Context(), "vpc-emulator")
	_, nlb := client.ListNLBs(t.Context(), alicloud.NLBQuery{IDs: []string{"nlb-1"}})
	for action, err := range map[string]error{"slb:CreateLoadBalancer": clb, "vpc:DescribeVSwitches": vpc, "nlb:ListLoadBalancers": nlb} {
		if !alicloud.IsForbidden(err) || !strings.Contains(err.Error(), "grant "+action+" to ") {
			t.Errorf("error %v, want one that says to grant %s", err, action)
			continue
		}
		_, text, _ := strings.Cut(err.Error(), "{")
		var policy struct {
			Version   string
			Statement []struct{ Effect, Action, Resource string }
		}
		if err := json.Unmarshal([]byte("{"+text), &policy); err != nil {
			t.Fatalf("%v in {%s", err, text)
		}
		if len(policy.Statement) != 1 || policy.Statement[0].Action != action || policy.Statement[0].Effect != "Allow" || policy.Version != "1" {
			t.Errorf("policy %+v, want one that allows %s", policy, action)
		}
	}
}

// TestAdviceOnQuotas: the text of a used-up quota says of what, and where to get more.
func TestAdviceOnQuotas(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]string{
		"ListenerNumberOverLimit":    "the quota of listeners of the load balancer is used up",
		"TooManyBackendServers":      "the quota of backend servers of the load balancer is used up",
		"ORDER.QUOTA_EXCEEDED":       "the quota of load balancers of the account is used up",
		"QuotaExceeded.Something":    "a quota is used up",
		"VSwitchAvailableIpNotExist": "the vSwitch has no free address",
	} {
		if err := (&alicloud.Error{Product: "slb", Action: "A", Code: code, RequestID: "1"}); !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", code, err, want)
		}
	}
	for _, err := range []error{&alicloud.Error{Product: "slb", Code: "Forbidden.RiskControl"}, &alicloud.Error{Code: "OperationDenied"},
		&alicloud.Error{}} {
		if text := err.Error(); strings.Contains(text, "grant") || strings.Contains(text, "quota") {
			t.Errorf("advice in %q, which nobody can follow", text)
		}
	}
}
