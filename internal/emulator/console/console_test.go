package console_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
)

const hostile = `<script>document.title="broken"</script>`

func TestEverythingIsEscaped(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.put("i-1", emulator.InstanceSpec{Name: hostile})
	s.call("2014-05-15", "CreateLoadBalancer", map[string]string{"LoadBalancerName": hostile, "Tag.1.Key": hostile, "Tag.1.Value": "x"})
	s.call("2014-05-15", hostile, map[string]string{hostile: hostile})
	body, header := s.fetch("/console/?q=" + "%3Cscript%3E")
	if strings.Contains(body, hostile) || strings.Contains(body, `value="<script>`) {
		t.Error("the page holds a script from outside")
	}
	if n := strings.Count(body, "&lt;script&gt;"); n < 5 {
		t.Errorf("the page shows %d escaped names, want the instance, the load balancer, its tag, the call and the filter", n)
	}
	if csp := header.Get("Content-Security-Policy"); !strings.Contains(csp, "default-src 'none'") || strings.Contains(csp, "unsafe") {
		t.Errorf("Content-Security-Policy = %q", csp)
	}
}

func TestFilterAndLimit(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	for i := range 120 {
		s.put(fmt.Sprintf("i-%03d", i), emulator.InstanceSpec{Name: fmt.Sprintf("worker-%03d", i)})
	}
	all, _ := s.fetch("/console/")
	if !strings.Contains(all, "20 more are not shown") || strings.Contains(all, "worker-119") ||
		!strings.Contains(all, "<strong>120</strong> Instances") {
		t.Error("a long list is not cut to 100 with the rest counted")
	}
	one, _ := s.fetch("/console/?q=WORKER-119")
	if !strings.Contains(one, "<strong>worker-119</strong>") || strings.Contains(one, "worker-118") || strings.Contains(one, "not shown") {
		t.Error("the filter does not find what the limit hides")
	}
	none, _ := s.fetch("/console/?q=nothing-has-this")
	if !strings.Contains(none, "No instances match.") {
		t.Error("an empty result does not say so")
	}
}

// next reads the next event of a stream.
func next(t *testing.T, lines *bufio.Scanner) (name, html string) {
	t.Helper()
	for lines.Scan() {
		if value, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
			name = value
		}
		if value, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			if err := json.Unmarshal([]byte(value), &html); err != nil {
				t.Fatal(err)
			}
			return name, html
		}
	}
	t.Fatalf("the stream ended: %v", lines.Err())
	return "", ""
}

func TestEventsCarryOnlyWhatChanged(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/console/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 1<<20)
	for _, want := range []string{
		"summary", "services", "shared", "loadbalancers", "networkloadbalancers", "jobs", "routes", "instances", "securitygroups", "accesslists",
		"certificates", "eips", "windows", "calls",
	} {
		if name, _ := next(t, lines); name != want {
			t.Fatalf("event %s, want %s", name, want)
		}
	}
	s.put("i-1", emulator.InstanceSpec{Name: "first"})
	for _, want := range []string{"summary", "instances"} {
		if name, _ := next(t, lines); name != want {
			t.Fatalf("after a new instance: event %s, want %s", name, want)
		}
	}
	s.call("2014-05-15", "DescribeLoadBalancers", nil)
	for _, want := range []struct{ name, holds string }{{"windows", "1 of 3000"}, {"calls", "DescribeLoadBalancers"}} {
		if name, html := next(t, lines); name != want.name || !strings.Contains(html, want.holds) {
			t.Errorf("after a call: event %s, want %s with %q", name, want.name, want.holds)
		}
	}
}

func TestConsoleIsForThisHost(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	body, _ := s.fetch("/console/static/console.js")
	page, _ := s.fetch("/console/")
	for _, text := range []string{body, page} {
		if strings.Contains(text, "http://") || strings.Contains(text, "https://") {
			t.Error("the console refers to another host")
		}
	}
}

// TestNetworkLoadBalancers: zones, listeners, groups with the health of their servers, jobs and security groups, and what a filter leaves.
func TestNetworkLoadBalancers(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.put("i-worker1", emulator.InstanceSpec{VSwitchID: "vsw-a"})
	s.put("i-worker3", emulator.InstanceSpec{VSwitchID: "vsw-b"})
	s.network(hostile)
	page := func(query string) string {
		body, _ := s.fetch("/console/" + query)
		return body
	}
	testkit.Eventually(t, "one server fails its checks", func(context.Context) bool { return strings.Contains(page(""), "1 unhealthy") })
	body := page("")
	for _, want := range []string{
		".nlb.aliyuncsslb.com</code>", "cn-hangzhou-b", "<strong>8443</strong> TCP", "<strong>9000-9100</strong> UDP", "PROXY protocol",
		"and 196 more",
		"health check TCP every 1s", "CONNECT_FAIL", ">Healthy<", "Server groups without a listener", ">Succeeded<",
		"<code>198.51.100.0/24</code>", "<code>sg-",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("the page does not show %q", want)
		}
	}
	if strings.Contains(body, hostile) {
		t.Error("the page holds a script from outside")
	}
	if filtered := page("?q=10.2.0."); !strings.Contains(filtered, "<strong>8443</strong>") || strings.Contains(filtered, "198.51.100.0/24") {
		t.Error("the filter does not find an NLB by the address in a zone")
	}
	if none := page("?q=nothing-has-this"); !strings.Contains(none, "No network load balancers match.") ||
		!strings.Contains(none, "No jobs match.") {
		t.Error("an empty result does not say so")
	}
}

// network makes an NLB with two listeners, a group without one, and a security group.
func (s *scene) network(name string) {
	s.t.Helper()
	const nlb, ecs = "2022-04-30", "2014-05-26"
	var sg struct{ SecurityGroupId string }
	s.decode(&sg, s.call(ecs, "CreateSecurityGroup", map[string]string{"VpcId": "vpc-emulator", "SecurityGroupName": name}))
	s.call(ecs, "AuthorizeSecurityGroup", map[string]string{
		"SecurityGroupId": sg.SecurityGroupId, "Permissions.1.IpProtocol": "ALL", "Permissions.1.PortRange": "-1/-1",
		"Permissions.1.Policy":       "drop",
		"Permissions.1.SourceCidrIp": "198.51.100.0/24", "Permissions.1.Description": name,
	})
	var lb struct{ LoadbalancerId string }
	s.decode(&lb, s.call(nlb, "CreateLoadBalancer", map[string]string{
		"AddressType": "Intranet", "VpcId": "vpc-emulator", "LoadBalancerName": "edge", "SecurityGroupIds.1": sg.SecurityGroupId,
		"ZoneMappings.1.ZoneId": "cn-hangzhou-a", "ZoneMappings.1.VSwitchId": "vsw-a", "ZoneMappings.2.ZoneId": "cn-hangzhou-b",
		"ZoneMappings.2.VSwitchId": "vsw-b",
	}))
	group := func(more map[string]string) string {
		var g struct{ ServerGroupId string }
		params := map[string]string{"ServerGroupName": name, "VpcId": "vpc-emulator"}
		maps.Copy(params, more)
		s.decode(&g, s.call(nlb, "CreateServerGroup", params))
		return g.ServerGroupId
	}
	group(nil)
	checked := group(map[string]string{
		"HealthCheckConfig.HealthCheckInterval": "1", "HealthCheckConfig.HealthCheckConnectTimeout": "1",
		"HealthCheckConfig.HealthyThreshold": "2", "HealthCheckConfig.UnhealthyThreshold": "2",
	})
	s.call(nlb, "AddServersToServerGroup", map[string]string{
		"ServerGroupId": checked, "Servers.1.ServerId": "i-worker1", "Servers.1.ServerType": "Ecs", "Servers.1.Port": "80",
		"Servers.2.ServerId": "i-worker3", "Servers.2.ServerType": "Ecs", "Servers.2.Port": "80",
	})
	ranged := group(map[string]string{"Protocol": "UDP", "AnyPortEnabled": "true", "HealthCheckConfig.HealthCheckEnabled": "false"})
	s.call(nlb, "CreateListener", map[string]string{
		"LoadBalancerId": lb.LoadbalancerId, "ServerGroupId": checked, "ListenerPort": "8443", "ListenerProtocol": "TCP",
		"ProxyProtocolEnabled": "true",
	})
	s.call(nlb, "CreateListener", map[string]string{
		"LoadBalancerId": lb.LoadbalancerId, "ServerGroupId": ranged, "ListenerPort": "0", "StartPort": "9000", "EndPort": "9100",
		"ListenerProtocol": "UDP",
	})
}
