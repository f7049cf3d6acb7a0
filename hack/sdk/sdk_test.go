// Package sdk drives the vendor's newer clients against the emulator, as a stranger would: the built program, and clients from their
// registries.
package sdk

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	openapi "github.com/alibabacloud-go/darabonba-openapi/v2/client"
	openapiutil "github.com/alibabacloud-go/darabonba-openapi/v2/utils"
	"github.com/alibabacloud-go/tea/dara"
	"github.com/alibabacloud-go/tea/tea"
)

const region = "cn-hangzhou"

// emulator starts the built program and returns its address.
func emulator(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("SANDBOX_BIN_DIR")
	if dir == "" {
		dir = "../../bin"
	}
	ctx, cancel := context.WithCancel(context.Background())
	command := exec.CommandContext(ctx, filepath.Join(dir, "alicloud-emulator"), "--listen", "127.0.0.1:0") //nolint:gosec // the program under test
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = 10 * time.Second
	out, err := command.StdoutPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		cancel()
		t.Fatalf("start the emulator (make build): %v", err)
	}
	t.Cleanup(func() {
		cancel()
		_ = command.Wait() // ended by the signal
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	address, ok := strings.CutPrefix(strings.TrimSpace(line), "listening on http://")
	if err != nil || !ok {
		t.Fatalf("the emulator says %q, %v", line, err)
	}
	return address
}

// account is the generic client of the newer Go SDK, which signs with ACS3.
type account struct {
	t      *testing.T
	client *openapi.Client
}

func newAccount(t *testing.T) account {
	t.Helper()
	client, err := openapi.NewClient(&openapiutil.Config{
		AccessKeyId: tea.String("emulator"), AccessKeySecret: tea.String("emulator-secret"), Endpoint: tea.String(emulator(t)),
		Protocol: tea.String("http"),
		RegionId: tea.String(region),
	})
	if err != nil {
		t.Fatal(err)
	}
	return account{t, client}
}

// try calls an action with parameters in the query, or in a form where the body is not empty.
func (a account) try(version, action string, query, body map[string]any) (map[string]any, error) {
	params := &openapiutil.Params{
		Action: tea.String(action), Version: tea.String(version), Protocol: tea.String("HTTP"), Pathname: tea.String("/"),
		Method:   tea.String("POST"),
		AuthType: tea.String("AK"), Style: tea.String("RPC"), ReqBodyType: tea.String("formData"), BodyType: tea.String("json"),
	}
	request := &openapiutil.OpenApiRequest{Query: openapiutil.Query(query)}
	if len(body) > 0 {
		request.Body = openapiutil.ParseToMap(body)
	}
	answer, err := a.client.CallApi(params, request, &dara.RuntimeOptions{})
	if err != nil {
		return nil, err
	}
	content, _ := answer["body"].(map[string]any)
	return content, nil
}

func (a account) call(version, action string, query, body map[string]any) map[string]any {
	a.t.Helper()
	answer, err := a.try(version, action, query, body)
	if err != nil {
		a.t.Fatalf("%s: %v", action, err)
	}
	return answer
}

// p are parameters.
type p = map[string]any

func text(v any, path ...any) string {
	for _, step := range path {
		switch s := step.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[s]
		case int:
			l, _ := v.([]any)
			if s >= len(l) {
				return ""
			}
			v = l[s]
		}
	}
	s, _ := v.(string)
	return s
}

func TestSLB(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	const version = "2014-05-15"
	lb := text(a.call(version, "CreateLoadBalancer", p{"RegionId": region, "AddressType": "internet", "LoadBalancerName": "ü * ~"}, nil),
		"LoadBalancerId")
	list := a.call(version, "DescribeLoadBalancers", p{"RegionId": region, "LoadBalancerName": "ü * ~"}, nil)
	if got := text(list, "LoadBalancers", "LoadBalancer", 0, "LoadBalancerId"); got != lb {
		t.Errorf("the list has %q, want %q", got, lb)
	}
	a.call(version, "SetLoadBalancerName", p{"LoadBalancerId": lb, "LoadBalancerName": "changed"}, nil)
	a.call(version, "DeleteLoadBalancer", p{"LoadBalancerId": lb}, nil)
	_, err := a.try(version, "DescribeLoadBalancerAttribute", p{"LoadBalancerId": lb}, nil)
	if err == nil || !strings.Contains(err.Error(), "InvalidLoadBalancerId.NotFound") {
		t.Errorf("a load balancer that is gone: %v", err)
	}
}

// TestNLB sends parameters in a form body, as the generated client of NLB does.
func TestNLB(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	const version = "2022-04-30"
	made := a.call(version, "CreateLoadBalancer", nil, p{
		"AddressType": "Intranet", "VpcId": "vpc-emulator", "LoadBalancerName": "generic",
		"ZoneMappings": []any{p{"ZoneId": "cn-hangzhou-a", "VSwitchId": "vsw-a"}, p{"ZoneId": "cn-hangzhou-b", "VSwitchId": "vsw-b"}},
		"Tag":          []any{p{"Key": "a", "Value": "b"}},
	})
	lb := text(made, "LoadbalancerId")
	list := a.call(version, "ListLoadBalancers", p{"LoadBalancerIds": []any{lb}}, nil)
	if got := text(list, "LoadBalancers", 0, "LoadBalancerName"); got != "generic" {
		t.Errorf("the list has %q: %v", got, list)
	}
	group := text(a.call(version, "CreateServerGroup", nil, p{
		"ServerGroupName": "generic", "VpcId": "vpc-emulator",
		"HealthCheckConfig": p{"HealthCheckEnabled": true, "HealthCheckHttpCode": []any{"http_2xx"}},
	}), "ServerGroupId")
	listener := text(a.call(version, "CreateListener", nil,
		p{"LoadBalancerId": lb, "ServerGroupId": group, "ListenerProtocol": "TCP", "ListenerPort": 80}), "ListenerId")
	a.call(version, "UpdateListenerAttribute", nil, p{"ListenerId": listener, "IdleTimeout": 100})
	a.call(version, "DeleteListener", nil, p{"ListenerId": listener})
	a.call(version, "DeleteServerGroup", nil, p{"ServerGroupId": group})
	a.call(version, "DeleteLoadBalancer", nil, p{"LoadBalancerId": lb})
}

func TestVPC(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	const version = "2016-04-28"
	table := text(a.call(version, "CreateRouteTable", p{"RegionId": region, "VpcId": "vpc-emulator", "RouteTableName": "generic"}, nil),
		"RouteTableId")
	instance := text(a.call("2014-05-26", "RunInstances", p{
		"RegionId": region, "ImageId": "aliyun_3", "InstanceType": "ecs.g7.large", "VSwitchId": "vsw-a", "SecurityGroupId": "sg-emulator",
	}, nil), "InstanceIdSets", "InstanceIdSet", 0)
	batch := p{"RegionId": region,
		"RouteEntries": []any{p{"RouteTableId": table, "DstCidrBlock": "172.31.0.0/24", "NextHop": instance, "NextHopType": "Instance"}}}
	if made := a.call(version, "CreateRouteEntries", batch, nil); made["FailedCount"] == nil || text(made, "RouteEntryIds", 0) == "" {
		t.Errorf("the batch answers %v", made)
	}
	list := a.call(version, "DescribeRouteEntryList", p{"RegionId": region, "RouteTableId": table, "RouteEntryType": "Custom"}, nil)
	if got := text(list, "RouteEntrys", "RouteEntry", 0, "NextHops", "NextHop", 0, "NextHopId"); got != instance {
		t.Errorf("the list has the next hop %q, want %q", got, instance)
	}
	a.call(version, "DeleteRouteEntries", batch, nil)
	a.call(version, "DeleteRouteTable", p{"RouteTableId": table}, nil)
}

func TestECS(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	const version = "2014-05-26"
	id := text(a.call(version, "RunInstances", p{
		"RegionId": region, "ImageId": "aliyun_3", "InstanceType": "ecs.g7.large", "VSwitchId": "vsw-a", "SecurityGroupId": "sg-emulator",
		"InstanceName": "generic",
	}, nil), "InstanceIdSets", "InstanceIdSet", 0)
	list := a.call(version, "DescribeInstances", p{"RegionId": region, "InstanceIds": `["` + id + `"]`}, nil)
	if got := text(list, "Instances", "Instance", 0, "InstanceName"); got != "generic" {
		t.Errorf("the list has %q", got)
	}
	a.call(version, "StopInstance", p{"InstanceId": id}, nil)
	a.call(version, "DeleteInstance", p{"InstanceId": id, "Force": true}, nil)
}

// TestNode drives the clients for Node, which npm ci has put here.
func TestNode(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("node_modules"); err != nil {
		t.Fatal("node_modules is missing: run make test-sdk")
	}
	out, err := exec.CommandContext(t.Context(), "node", "client.js", emulator(t)).CombinedOutput()
	if err != nil {
		t.Errorf("node client.js: %v\n%s", err, out)
	}
	t.Logf("%s", out)
}

// TestQuickstartNode runs the block of the guide for users.
func TestQuickstartNode(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/how-to/emulator.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "```js test=TestQuickstartNode\n")
	code, _, closed := strings.Cut(rest, "\n```")
	if !closed {
		t.Fatal("the guide has no block for this test")
	}
	code = strings.ReplaceAll(code, "127.0.0.1:18080", emulator(t))
	if out, err := exec.CommandContext(t.Context(), "node", "-e", code).CombinedOutput(); err != nil { //nolint:gosec // the guide of this project
		t.Errorf("%v\n%s", err, out)
	}
}
