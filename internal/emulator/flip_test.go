package emulator_test

import (
	"slices"
	"strings"
	"testing"

	slbapi "github.com/aliyun/alibaba-cloud-sdk-go/services/slb"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
)

// TestFlipByAdmin: a flipped fact is false from the next call on, the journal has the facts that shaped an answer, and a fact that nobody
// knows, or that is about a setting, cannot be flipped.
func TestFlipByAdmin(t *testing.T) {
	t.Parallel()
	a := newAccount(t, emulator.Options{})
	settings := a.url + "/_emulator/settings"
	read := func(id string) error {
		r := slbapi.CreateDescribeLoadBalancerAttributeRequest()
		r.LoadBalancerId = id
		_, err := a.slb.DescribeLoadBalancerAttribute(r)
		return err
	}
	wantCode(t, read("lb-absent"), "InvalidLoadBalancerId.NotFound", 404)
	calls := a.Calls(0)
	if met := calls[len(calls)-1].Facts; !slices.Contains(met, "slb.InvalidLoadBalancerId.NotFound") {
		t.Errorf("the journal has the facts %v", met)
	}
	status, answer := get(t, "PUT", settings, `{"flipped":["slb.InvalidLoadBalancerId.NotFound","slb.created-active"]}`)
	wantEqual(t, answer, status, 204)
	wantCode(t, read("lb-absent"), "InvalidLoadBalancerId.NotFoundOther", 404)
	lb := testkit.Must(a.slb.CreateLoadBalancer(slbapi.CreateCreateLoadBalancerRequest()))(t).LoadBalancerId
	described := slbapi.CreateDescribeLoadBalancerAttributeRequest()
	described.LoadBalancerId = lb
	wantEqual(t, "status", testkit.Must(a.slb.DescribeLoadBalancerAttribute(described))(t).LoadBalancerStatus, "inactive")
	status, _ = get(t, "PUT", settings, `{"flipped":[]}`)
	wantEqual(t, "unflip", status, 204)
	wantCode(t, read("lb-absent"), "InvalidLoadBalancerId.NotFound", 404)
	for id, why := range map[string]string{"slb.unheard-of": "no fact", "common.settle": "cannot be flipped: change --settle"} {
		status, answer := get(t, "PUT", settings, `{"flipped":["`+id+`"]}`)
		if status != 400 || !strings.Contains(answer, why) {
			t.Errorf("flip %s: %d %s", id, status, answer)
		}
	}
}
