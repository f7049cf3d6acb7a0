package console_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
)

var (
	tagOrSpace = regexp.MustCompile(`<[^>]*>|\s+`)
	balancerID = regexp.MustCompile(`\b(lb|nlb|acl)-[0-9a-z]+`)
)

// section returns the text of a section of the page, with one space between words.
func section(t *testing.T, page, name string) string {
	t.Helper()
	_, rest, ok := strings.Cut(page, `<div id="`+name+`" data-section>`)
	if !ok {
		t.Fatalf("the page has no section %s", name)
	}
	text, _, _ := strings.Cut(rest, "</section>")
	return balancerID.ReplaceAllString(strings.Join(strings.Fields(tagOrSpace.ReplaceAllString(text, " ")), " "), "$1")
}

// clbOf makes a CLB with the marks of a Service, and one listener with an access list.
func (s *scene) clbOf(namespace, name, cluster string) (id string) {
	s.t.Helper()
	const slb = "2014-05-15"
	var lb struct{ LoadBalancerId, Address string } //nolint:revive // wire name
	var group struct{ VServerGroupId string }       //nolint:revive // wire name
	var acl struct{ AclId string }                  //nolint:revive // wire name
	mark := func(port string) string { return strings.Join([]string{"k8s", port, name, namespace, cluster}, "/") }
	s.decode(&lb,
		s.call(slb, "CreateLoadBalancer",
			map[string]string{"LoadBalancerName": "a1b2c3", "Tag.1.Key": "kubernetes.do.not.delete", "Tag.1.Value": "a1b2c3"}))
	s.decode(&group, s.call(slb, "CreateVServerGroup", map[string]string{
		"LoadBalancerId": lb.LoadBalancerId, "VServerGroupName": mark("30080"),
		"BackendServers": `[{"ServerId":"i-worker1","Port":30080,"Weight":100}]`,
	}))
	s.decode(&acl, s.call(slb, "CreateAccessControlList", map[string]string{"AclName": "offices"}))
	s.call(slb, "AddAccessControlListEntry",
		map[string]string{"AclId": acl.AclId, "AclEntrys": `[{"entry":"192.0.2.0/24","comment":"Berlin"}]`})
	s.call(slb, "CreateLoadBalancerTCPListener", map[string]string{
		"LoadBalancerId": lb.LoadBalancerId, "ListenerPort": "443", "VServerGroupId": group.VServerGroupId, "Bandwidth": "-1",
		"Description": mark("443"),
		"AclStatus":   "on", "AclType": "white", "AclId": acl.AclId,
	})
	return lb.LoadBalancerId
}

// TestServices: the page shows what each Service has, on CLBs and NLBs, and which load balancers have nothing of any Service yet. The
// filter finds a Service by its name.
func TestServices(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.put("i-worker1", emulator.InstanceSpec{VSwitchID: "vsw-a"})
	if empty, _ := s.fetch("/console/"); section(t, empty, "services") != "No Services yet." {
		t.Errorf("without anything: %q", section(t, empty, "services"))
	}
	s.clbOf("shop", "web", "c1")
	s.call("2014-05-15", "CreateLoadBalancer",
		map[string]string{"LoadBalancerName": "young", "Tag.1.Key": "kubernetes.do.not.delete", "Tag.1.Value": "a9f8e7"})
	s.call("2014-05-15", "CreateLoadBalancer", map[string]string{"LoadBalancerName": "by hand"})
	s.nlbOf("k8s.8443.TCP.api.shop.c1")
	page, _ := s.fetch("/console/")
	got := regexp.MustCompile(`\b(\d+\.){3}\d+\b|\S+\.nlb\.aliyuncsslb\.com`).ReplaceAllString(section(t, page, "services"), "ADDRESS")
	want := "Services Service Load balancer Address Ports Backend servers " +
		"a9f8e7 CLB lb ADDRESS no listener of its own 0 " +
		"shop/api NLB nlb ADDRESS 8443 TCP Running 1 " +
		"shop/web CLB lb ADDRESS 443 tcp stopped white list acl 1"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Services (-want +got):\n%s", diff)
	}
	one, _ := s.fetch("/console/?q=SHOP/API")
	if text := section(t, one, "services"); strings.Contains(text, "shop/web") || !strings.Contains(text, "shop/api") {
		t.Errorf("filtered by name: %q", text)
	}
	for name, want := range map[string]string{
		"services": "No Services match.", "accesslists": "No access lists match.", "certificates": "No certificates match.",
		"eips": "No elastic IP addresses match.",
	} {
		none, _ := s.fetch("/console/?q=nothing-has-this")
		if got := section(t, none, name); got != want {
			t.Errorf("section %s without a match: %q, want %q", name, got, want)
		}
		if !strings.Contains(section(t, none, "routes"), "No entries match.") {
			t.Errorf("routes without a match: %q", section(t, none, "routes"))
		}
	}
	if text := section(t, page, "accesslists"); text != "offices acl 1 entry Used by lb tcp/443 192.0.2.0/24 Berlin" {
		t.Errorf("access lists: %q", text)
	}
}

// nlbOf makes an NLB with one listener of this description and one backend server.
func (s *scene) nlbOf(description string) (id string) {
	s.t.Helper()
	const nlb = "2022-04-30"
	var lb struct{ LoadbalancerId string }   //nolint:revive // wire name
	var group struct{ ServerGroupId string } //nolint:revive // wire name
	s.decode(&lb, s.call(nlb, "CreateLoadBalancer", map[string]string{
		"AddressType": "Intranet", "VpcId": "vpc-emulator", "ZoneMappings.1.ZoneId": "cn-hangzhou-a", "ZoneMappings.1.VSwitchId": "vsw-a",
		"ZoneMappings.2.ZoneId": "cn-hangzhou-b", "ZoneMappings.2.VSwitchId": "vsw-b",
	}))
	s.decode(&group,
		s.call(nlb, "CreateServerGroup",
			map[string]string{"ServerGroupName": description, "VpcId": "vpc-emulator", "HealthCheckConfig.HealthCheckEnabled": "false"}))
	s.call(nlb, "AddServersToServerGroup", map[string]string{
		"ServerGroupId": group.ServerGroupId, "Servers.1.ServerId": "i-worker1", "Servers.1.ServerType": "Ecs", "Servers.1.Port": "80",
	})
	s.call(nlb, "CreateListener", map[string]string{
		"LoadBalancerId": lb.LoadbalancerId, "ServerGroupId": group.ServerGroupId, "ListenerPort": "8443", "ListenerProtocol": "TCP",
		"ListenerDescription": description,
	})
	return lb.LoadbalancerId
}

// TestSharedLoadBalancers: the page shows which Services share a load balancer, in a group or by its ID, and which ports each of them has.
// What nobody shares is not there. The filter finds a group by its name, and by those of its Services.
func TestSharedLoadBalancers(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.put("i-worker1", emulator.InstanceSpec{VSwitchID: "vsw-a"})
	if empty, _ := s.fetch("/console/"); section(t, empty, "shared") != "No shared load balancers yet." {
		t.Errorf("without anything: %q", section(t, empty, "shared"))
	}
	s.clbOf("shop", "alone", "c1")
	s.sharedCLB("c1/shop/edge", "k8s/80/web/shop/c1", "k8s/443/web/shop/c1", "k8s/8080/api/shop/c1", "by hand")
	s.sharedCLB("c1/shop/edge", "k8s/80/blog/shop/c1")
	s.sharedCLB("", "k8s/80/first/team/c1", "k8s/81/second/team/c2")
	s.sharedCLB("c1/shop/young")
	s.sharedNLB("c1/shop/edge", "k8s.8443.TCP.api.shop.c1", "k8s.8444.TCP.web.shop.c1")
	address := regexp.MustCompile(`\b(\d+\.){3}\d+\b|\S+\.nlb\.aliyuncsslb\.com`)
	const head = " Service Ports Backend servers "
	page, _ := s.fetch("/console/")
	want := "No group CLB lb ADDRESS 2 Services, 2 listeners" + head + "team/first 80 tcp stopped 1 team/second 81 tcp stopped 1 " +
		"Group shop/edge c1 CLB lb ADDRESS 2 Services, 3 listeners" + head +
		"shop/api 8080 tcp stopped 1 shop/web 80 tcp stopped 443 tcp stopped 2 " +
		"not of a Service 81 tcp stopped " +
		"Group shop/edge c1 CLB lb ADDRESS 1 Service, 1 listener" + head + "shop/blog 80 tcp stopped 1 " +
		"Group shop/edge c1 NLB nlb ADDRESS 2 Services, 2 listeners" + head + "shop/api 8443 TCP Running 1 shop/web 8444 TCP Running 1 " +
		"Group shop/young c1 CLB lb ADDRESS 0 Services, 0 listeners" + strings.TrimSuffix(head, " ")
	if diff := cmp.Diff(want, address.ReplaceAllString(section(t, page, "shared"), "ADDRESS")); diff != "" {
		t.Errorf("shared load balancers (-want +got):\n%s", diff)
	}
	if text := section(t, page, "services"); strings.Count(text, "group shop/edge") != 5 || strings.Contains(text, "young") {
		t.Errorf("Services of the group: %q", text)
	}
	for query, want := range map[string]int{"shop%2Fedge": 3, "shop%2Fblog": 1, "team%2Fsecond": 1, "shop%2Falone": 0} {
		found, _ := s.fetch("/console/?q=" + query)
		if got := strings.Count(section(t, found, "shared"), "Backend servers"); got != want {
			t.Errorf("%s: %d shared load balancers, want %d: %q", query, got, want, section(t, found, "shared"))
		}
	}
}

// sharedCLB makes a CLB of a group with a listener and a vServer group for each mark, on the port in it.
func (s *scene) sharedCLB(group string, marks ...string) {
	s.t.Helper()
	const slb = "2014-05-15"
	var lb struct{ LoadBalancerId string } //nolint:revive // wire name
	tags := map[string]string{}
	if group != "" {
		tags = map[string]string{"Tag.1.Key": "alicloud-ccm/load-balancer-group", "Tag.1.Value": group}
	}
	s.decode(&lb, s.call(slb, "CreateLoadBalancer", tags))
	for _, mark := range marks {
		port := "81" // of a listener that somebody made by hand
		if parts := strings.Split(mark, "/"); len(parts) > 1 {
			port = parts[1]
		}
		var made struct{ VServerGroupId string } //nolint:revive // wire name
		s.decode(&made, s.call(slb, "CreateVServerGroup", map[string]string{
			"LoadBalancerId": lb.LoadBalancerId, "VServerGroupName": mark, "BackendServers": `[{"ServerId":"i-worker1","Port":30080,"Weight":100}]`,
		}))
		s.call(slb, "CreateLoadBalancerTCPListener", map[string]string{
			"LoadBalancerId": lb.LoadBalancerId, "ListenerPort": port, "VServerGroupId": made.VServerGroupId, "Bandwidth": "-1", "Description": mark,
		})
	}
}

// sharedNLB makes an NLB of a group with two listeners.
func (s *scene) sharedNLB(group, first, second string) {
	s.t.Helper()
	const nlb = "2022-04-30"
	id := s.nlbOf(first)
	s.call(nlb, "TagResources",
		map[string]string{"ResourceType": "loadbalancer", "ResourceId.1": id, "Tag.1.Key": "alicloud-ccm/load-balancer-group",
			"Tag.1.Value": group})
	var made struct{ ServerGroupId string } //nolint:revive // wire name
	s.decode(&made,
		s.call(nlb, "CreateServerGroup",
			map[string]string{"ServerGroupName": second, "VpcId": "vpc-emulator", "HealthCheckConfig.HealthCheckEnabled": "false"}))
	s.call(nlb, "AddServersToServerGroup", map[string]string{
		"ServerGroupId": made.ServerGroupId, "Servers.1.ServerId": "i-worker1", "Servers.1.ServerType": "Ecs", "Servers.1.Port": "81",
	})
	s.call(nlb, "CreateListener", map[string]string{
		"LoadBalancerId": id, "ServerGroupId": made.ServerGroupId, "ListenerPort": "8444", "ListenerProtocol": "TCP",
		"ListenerDescription": second,
	})
}

// TestCallsByKind: the page shows only writes, or only calls that failed, if it is asked to, and says so.
func TestCallsByKind(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.call("2014-05-15", "DescribeLoadBalancers", nil)
	s.call("2014-05-15", "CreateLoadBalancer", map[string]string{"LoadBalancerName": "web"})
	s.call("2014-05-15", "DeleteVServerGroup", map[string]string{"VServerGroupId": "rsp-none"})
	for query, want := range map[string]string{
		"":                     "DeleteVServerGroup CreateLoadBalancer DescribeLoadBalancers",
		"?calls=writes":        "DeleteVServerGroup CreateLoadBalancer",
		"?calls=errors":        "DeleteVServerGroup",
		"?calls=writes&q=web":  "CreateLoadBalancer",
		"?calls=anything-else": "DeleteVServerGroup CreateLoadBalancer DescribeLoadBalancers",
		"?calls=errors&q=web":  "No calls match.",
	} {
		page, _ := s.fetch("/console/" + query)
		got := strings.Join(regexp.MustCompile(`DeleteVServerGroup|CreateLoadBalancer|DescribeLoadBalancers|No calls match\.`).FindAllString(section(t, page, "calls"), -1), " ")
		if got != want {
			t.Errorf("%q: calls %q, want %q", query, got, want)
		}
		if only := strings.Contains(page, "Only calls that"); only != (strings.Contains(query, "writes") || strings.Contains(query, "errors")) {
			t.Errorf("%q: the page says that it shows only some calls: %v", query, only)
		}
	}
}

// TestBrowsersAreLedToTheConsole: a person who opens the address of the emulator sees the console; clients of the OpenAPI get its answers.
func TestBrowsersAreLedToTheConsole(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
	for _, test := range []struct {
		path, accept string
		status       int
	}{
		{"/", "text/html,application/xhtml+xml,*/*;q=0.8", http.StatusFound},
		{"/", "*/*", http.StatusBadRequest},
		{"/?Action=DescribeRegions", "text/html", http.StatusBadRequest},
		{"/other", "text/html", http.StatusBadRequest},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+test.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Accept", test.accept)
		response, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if to := response.Header.Get("Location"); response.StatusCode != test.status || (to == "/console/") != (test.status == http.StatusFound) {
			t.Errorf("GET %s, Accept %s: status %d to %q, want %d", test.path, test.accept, response.StatusCode, to, test.status)
		}
	}
}
