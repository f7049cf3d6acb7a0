package emulator_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aliyun/alibaba-cloud-sdk-go/sdk"
	"github.com/aliyun/alibaba-cloud-sdk-go/sdk/auth/credentials"
	slbapi "github.com/aliyun/alibaba-cloud-sdk-go/services/slb"
	stsapi "github.com/aliyun/alibaba-cloud-sdk-go/services/sts"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/rpc"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
)

// madeAccount is an account that a test has made behind one address.
type madeAccount struct{ AccountID, AccessKeyID, AccessKeySecret, Region, Path string }

// newAccounts serves accounts behind one address.
func newAccounts(t *testing.T) (url string) {
	t.Helper()
	accounts := testkit.Must(emulator.NewAccounts(emulator.Options{}))(t)
	server := httptest.NewServer(accounts.Handler())
	t.Cleanup(func() {
		server.Close()
		testkit.Must(0, accounts.Close())(t)
	})
	return server.URL
}

func newOther(t *testing.T, url, config string) madeAccount {
	t.Helper()
	code, answer := get(t, "POST", url+"/_emulator/accounts", config)
	wantEqual(t, "make an account: "+answer, code, 201)
	var made madeAccount
	testkit.Must(0, json.Unmarshal([]byte(answer), &made))(t)
	return made
}

func (m madeAccount) slb(t *testing.T, url string) *slbapi.Client {
	t.Helper()
	client := testkit.Must(slbapi.NewClientWithOptions("cn-hangzhou", sdk.NewConfig().WithScheme("HTTP"),
		credentials.NewAccessKeyCredential(m.AccessKeyID, m.AccessKeySecret)))(t)
	client.Domain = strings.TrimPrefix(url, "http://")
	return client
}

func balancers(t *testing.T, c *slbapi.Client) int {
	t.Helper()
	request := slbapi.CreateDescribeLoadBalancersRequest()
	return testkit.Must(c.DescribeLoadBalancers(request))(t).TotalCount
}

// TestAccountsAreIsolated: accounts behind one address share no resource, key, fault or journal; the access key says whose a call is, also
// a temporary one.
func TestAccountsAreIsolated(t *testing.T) {
	t.Parallel()
	url := newAccounts(t)
	first := madeAccount{AccessKeyID: "emulator", AccessKeySecret: "emulator-secret"}.slb(t, url)
	one, two := newOther(t, url, ""), newOther(t, url,
		"region: cn-hangzhou\nvpcs: [{id: vpc-2, cidr: 10.0.0.0/8}]\nrouteTables: [{id: vtb-2, vpcId: vpc-2}]\nvSwitches: [{id: vsw-2, vpcId: vpc-2, zoneId: cn-hangzhou-a, cidr: 10.1.0.0/16}]\n")
	for i, c := range []*slbapi.Client{one.slb(t, url), two.slb(t, url), one.slb(t, url)} {
		request := slbapi.CreateCreateLoadBalancerRequest()
		request.LoadBalancerName = fmt.Sprint("lb-", i)
		testkit.Must(c.CreateLoadBalancer(request))(t)
	}
	wantEqual(t, "of the first account", balancers(t, first), 0)
	wantEqual(t, "of account one", balancers(t, one.slb(t, url)), 2)
	wantEqual(t, "of account two", balancers(t, two.slb(t, url)), 1)

	code, _ := get(t, "POST", url+one.Path+"/_emulator/faults", `{"action":"DescribeLoadBalancers","code":"SystemBusy","status":400}`)
	wantEqual(t, "fault", code/100, 2)
	wantEqual(t, "of account two, past the fault of one", balancers(t, two.slb(t, url)), 1)
	_, err := one.slb(t, url).DescribeLoadBalancers(slbapi.CreateDescribeLoadBalancersRequest())
	wantCode(t, err, "SystemBusy", 400)
	_, calls := get(t, "GET", url+"/_emulator/calls", "")
	wantEqual(t, "calls in the journal of the first account", strings.Count(calls, `"seq"`), 1)

	roles := testkit.Must(stsapi.NewClientWithOptions("cn-hangzhou", sdk.NewConfig().WithScheme("HTTP"),
		credentials.NewAccessKeyCredential(one.AccessKeyID, one.AccessKeySecret)))(t)
	roles.Domain = strings.TrimPrefix(url, "http://")
	assume := stsapi.CreateAssumeRoleRequest()
	assume.RoleArn, assume.RoleSessionName = "acs:ram::"+one.AccountID+":role/emulator-role", "test"
	key := testkit.Must(roles.AssumeRole(assume))(t).Credentials
	temporary := testkit.Must(slbapi.NewClientWithOptions("cn-hangzhou", sdk.NewConfig().WithScheme("HTTP"),
		credentials.NewStsTokenCredential(key.AccessKeyId, key.AccessKeySecret, key.SecurityToken)))(t)
	temporary.Domain = roles.Domain
	wantEqual(t, "of account one with a temporary key", balancers(t, temporary), 2)

	code, _ = get(t, "DELETE", url+"/_emulator/accounts/"+one.AccountID, "")
	wantEqual(t, "delete", code, 204)
	_, err = one.slb(t, url).DescribeLoadBalancers(slbapi.CreateDescribeLoadBalancersRequest())
	wantCode(t, err, "InvalidAccessKeyId.NotFound", 404)
	wantEqual(t, "of account two at the end", balancers(t, two.slb(t, url)), 1)
}

// TestAccountsRefuse: an id or a key is nobody else's, and what is not there is not found.
func TestAccountsRefuse(t *testing.T) {
	t.Parallel()
	url := newAccounts(t)
	networks := "region: cn-hangzhou\nvpcs: [{id: vpc-2, cidr: 10.0.0.0/8}]\nrouteTables: [{id: vtb-2, vpcId: vpc-2}]\nvSwitches: [{id: vsw-2, vpcId: vpc-2, zoneId: cn-hangzhou-a, cidr: 10.1.0.0/16}]\n"
	newOther(t, url, networks+"accountId: \"42\"\naccessKeys: [{id: mine, secret: s}]\n")
	for body, want := range map[string]int{
		networks + "accountId: \"42\"\n":                        409,
		networks + "accountId: \"1234567890123456\"\n":          409,
		networks + "accessKeys: [{id: mine, secret: s}]\n":      409,
		networks + "accessKeys: [{id: emulator, secret: s}]\n":  409,
		networks + "accountId: \"a/b\"\n":                       400, // it would be part of a path
		"unknown: 1\n":                                          400,
		networks + "instances: [{id: i-1, vSwitchId: nowhere}]": 400,
	} {
		code, answer := get(t, "POST", url+"/_emulator/accounts", body)
		wantEqual(t, body+answer, code, want)
	}
	for _, path := range []string{"/_emulator/accounts/7", "/_emulator/accounts/1234567890123456"} {
		code, _ := get(t, "DELETE", url+path, "")
		wantEqual(t, path, code, 404)
	}
	code, _ := get(t, "GET", url+"/accounts/7/_emulator/state", "")
	wantEqual(t, "state of nobody", code, 404)
	_, list := get(t, "GET", url+"/_emulator/accounts", "")
	wantEqual(t, "accounts", strings.Count(list, `"accountId"`), 1)
	code, _ = get(t, "GET", url+"/accounts/1234567890123456/_emulator/state", "")
	wantEqual(t, "state of the first account", code, 200)
}

// TestSnapshotByAdmin: a test saves what is there, changes it, and restores it; a snapshot that cannot be read changes nothing.
func TestSnapshotByAdmin(t *testing.T) {
	t.Parallel()
	url := newAccounts(t)
	one, two := newOther(t, url, ""), newOther(t, url, "")
	c := one.slb(t, url)
	testkit.Must(c.CreateLoadBalancer(slbapi.CreateCreateLoadBalancerRequest()))(t)
	code, saved := get(t, "GET", url+one.Path+"/_emulator/snapshot", "")
	wantEqual(t, "save", code, 200)
	testkit.Must(c.CreateLoadBalancer(slbapi.CreateCreateLoadBalancerRequest()))(t)
	for _, bad := range []string{"", "{}", `{"Version":99}`, saved[:len(saved)/2], `{"Version":1,"VPCs":7}`} {
		code, _ = get(t, "PUT", url+one.Path+"/_emulator/snapshot", bad)
		wantEqual(t, "restore of "+bad[:min(len(bad), 20)], code, 400)
		wantEqual(t, "load balancers after it", balancers(t, c), 2)
	}
	code, answer := get(t, "PUT", url+one.Path+"/_emulator/snapshot", saved)
	wantEqual(t, "restore: "+answer, code, 204)
	wantEqual(t, "load balancers then", balancers(t, c), 1)
	code, _ = get(t, "PUT", url+two.Path+"/_emulator/snapshot", saved)
	wantEqual(t, "restore into another account", code, 204)
	wantEqual(t, "its load balancers", balancers(t, two.slb(t, url)), 1)
}

// TestAccountsByPath: the access key says whose a call is also where a client writes the path of the product with a slash at its end.
func TestAccountsByPath(t *testing.T) {
	t.Parallel()
	url := newAccounts(t)
	one := newOther(t, url, "")
	for nonce, path := range []string{"/", "/vpc", "/vpc/"} {
		p := signed("POST", fmt.Sprint(nonce), func(p api.Params) { p["AccessKeyId"] = one.AccessKeyID })
		delete(p, "Signature")
		p["Signature"] = rpc.Sign(one.AccessKeySecret, "POST", p)
		code, answer := get(t, "POST", url+path+"?"+encode(p), "")
		wantEqual(t, path+": "+answer, code, 200)
	}
}

// TestLargeConfiguration: a configuration of more than a mebibyte is not cut off: the rest could be valid as well.
func TestLargeConfiguration(t *testing.T) {
	t.Parallel()
	url := newAccounts(t)
	networks := "region: cn-hangzhou\nvpcs: [{id: vpc-2, cidr: 10.0.0.0/8}]\nrouteTables: [{id: vtb-2, vpcId: vpc-2}]\nvSwitches: [{id: vsw-2, vpcId: vpc-2, zoneId: cn-hangzhou-a, cidr: 10.1.0.0/16}]\n"
	newOther(t, url, networks+strings.Repeat("#", 1<<20)+"\ninstances: [{id: i-1}]\n")
	_, list := get(t, "GET", url+"/_emulator/accounts", "")
	var made struct{ Accounts []madeAccount }
	testkit.Must(0, json.Unmarshal([]byte(list), &made))(t)
	_, state := get(t, "GET", url+made.Accounts[0].Path+"/_emulator/state", "")
	if !strings.Contains(state, `"i-1"`) {
		t.Errorf("state %s", state)
	}
}

// TestConfigurationWithoutKeys: the first account can be called although its configuration has no access key.
func TestConfigurationWithoutKeys(t *testing.T) {
	t.Parallel()
	config := cloud.DefaultConfig()
	config.AccessKeys = nil
	accounts := testkit.Must(emulator.NewAccounts(emulator.Options{Config: config}))(t)
	w := httptest.NewRecorder()
	accounts.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/?"+encode(signed("POST", "1", nil)), http.NoBody))
	wantEqual(t, "answer: "+w.Body.String(), w.Code, 200)
	wantEqual(t, "keys of the caller's configuration", len(config.AccessKeys), 0)
	testkit.Must(0, accounts.Close())(t)
}
