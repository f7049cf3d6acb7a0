package alicloud_test

import (
	"crypto/rand"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/rpc"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// raw makes a call of the VPC API that the client has no method for.
func (c testCloud) raw(t *testing.T, action string, parameters map[string]string, into any) {
	t.Helper()
	all := map[string]string{
		"Action": action, "Version": "2016-04-28", "Format": "JSON", "RegionId": "cn-hangzhou", "AccessKeyId": "emulator",
		"SignatureMethod":  "HMAC-SHA1",
		"SignatureVersion": "1.0", "SignatureNonce": rand.Text(), "Timestamp": time.Now().UTC().Format("2006-01-02T15:04:05Z"),
	}
	maps.Copy(all, parameters)
	all["Signature"] = rpc.Sign("emulator-secret", http.MethodGet, all)
	query := url.Values{}
	for name, value := range all {
		query.Set(name, value)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.URL()+"/?"+query.Encode(), http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer http.DefaultClient.CloseIdleConnections()
	defer response.Body.Close()
	if response.StatusCode >= http.StatusBadRequest {
		t.Fatalf("%s: status %d", action, response.StatusCode)
	}
	if err := json.NewDecoder(response.Body).Decode(into); err != nil {
		t.Fatal(err)
	}
}

func TestElasticAddresses(t *testing.T) {
	t.Parallel()
	c := newCloud(t)
	lb := testkit.Must(c.CreateLoadBalancer(t.Context(),
		alicloud.LoadBalancer{AddressType: alicloud.AddressIntranet, VPCID: "vpc-emulator", VSwitchID: "vsw-a"}, "t"))(t)
	if found := testkit.Must(c.DescribeEIPs(t.Context(), alicloud.EIPOfLoadBalancer, lb.ID))(t); len(found) != 0 {
		t.Errorf("elastic addresses of a CLB without: %v", found)
	}
	var eip struct{ AllocationId, EipAddress string }
	c.raw(t, "AllocateEipAddress", nil, &eip)
	c.raw(t, "AssociateEipAddress", map[string]string{"AllocationId": eip.AllocationId, "InstanceId": lb.ID, "InstanceType": "SlbInstance"},
		&struct{}{})
	want := []alicloud.EIP{{Address: eip.EipAddress, InstanceID: lb.ID}}
	got := testkit.Must(c.DescribeEIPs(t.Context(), alicloud.EIPOfLoadBalancer, lb.ID))(t)
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(alicloud.EIP{}, "ID")); diff != "" {
		t.Errorf("elastic addresses (-want +got):\n%s", diff)
	}
}
