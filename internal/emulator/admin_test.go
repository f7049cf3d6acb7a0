package emulator_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	slbapi "github.com/aliyun/alibaba-cloud-sdk-go/services/slb"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
)

func TestAdminInstances(t *testing.T) {
	t.Parallel()
	a := newAccount(t, emulator.Options{})
	url := a.url + "/_emulator/instances/i-1"
	status, _ := get(t, "PUT", url, `{}`)
	wantEqual(t, "put", status, 200)
	status, _ = get(t, "PUT", url,
		`{"InstanceName":"node-1","InstanceType":"ecs.c7.large","Status":"Stopped","RamRoleName":"emulator-role","Tags":[{"TagKey":"k","TagValue":"v"}]}`)
	wantEqual(t, "change", status, 200)
	i := a.Instances()[0]
	wantEqual(t, "instance", []any{i.Name, i.InstanceType, i.Status, i.RAMRole, i.Tags, i.VSwitchID, i.PrivateIP},
		[]any{"node-1", "ecs.c7.large", "Stopped", "emulator-role", map[string]string{"k": "v"}, "vsw-a", "10.1.0.1"})
	for body, want := range map[string]int{`{"PrivateIpAddress":"10.1.9.9"}`: 409, `{"Status":"Flying"}`: 400, `{"Nmae":"x"}`: 400,
		`nothing`: 400} {
		status, answer := get(t, "PUT", url, body)
		wantEqual(t, body+" answered "+answer, status, want)
	}
	for _, on := range []bool{true, false} {
		status, _ = get(t, "PUT", url, fmt.Sprintf(`{"SourceDestCheck":%t}`, on))
		wantEqual(t, "check of sources", status, 200)
		_, state := get(t, "GET", a.url+"/_emulator/state", "")
		wantEqual(t, "state after it", strings.Contains(state, fmt.Sprintf(`"SourceDestCheck":%t`, on)), true)
	}
	status, _ = get(t, "PUT", a.url+"/_emulator/instances/i-2", `{"PrivateIpAddress":"10.1.0.1"}`)
	wantEqual(t, "address in use", status, 409)
	status, _ = get(t, "DELETE", url, "")
	wantEqual(t, "delete", status, 204)
	status, _ = get(t, "DELETE", url, "")
	wantEqual(t, "delete again", status, 404)
	// The address is free again, and calls to the admin API are not journaled.
	status, _ = get(t, "PUT", a.url+"/_emulator/instances/i-2", `{"PrivateIpAddress":"10.1.0.1"}`)
	wantEqual(t, "address reused", status, 200)
	wantEqual(t, "calls", len(a.Calls(0)), 0)
}

func TestAdminIsLocal(t *testing.T) {
	t.Parallel()
	config := cloud.DefaultConfig()
	config.AccountID = "1000000000000000"
	for open, want := range map[bool]int{false: http.StatusForbidden, true: http.StatusOK} {
		a, err := emulator.NewAccounts(emulator.Options{Config: config, OpenAdmin: open})
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{"/_emulator/state", "/_emulator/accounts", "/console/",
			"/accounts/" + config.AccountID + "/_emulator/calls"} {
			r := httptest.NewRequest(http.MethodGet, path, nil)
			r.RemoteAddr = "203.0.113.9:1234"
			w := httptest.NewRecorder()
			a.Handler().ServeHTTP(w, r)
			wantEqual(t, fmt.Sprintf("status of %s, open: %t", path, open), w.Code, want)
		}
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestAdminState(t *testing.T) {
	t.Parallel()
	a := newAccount(t, emulator.Options{})
	a.put("i-1", emulator.InstanceSpec{})
	lb := a.newLB()
	a.newTCP(lb, a.newGroup(lb, `[{"ServerId":"i-1","Port":80}]`), 80)
	testkit.Must(a.createRoute("10.244.0.0/24", "i-1"))(t)
	_, body := get(t, "GET", a.url+"/_emulator/state", "")
	var state struct {
		Instances         []struct{ InstanceId, LoopbackAddress string }
		NetworkInterfaces []struct{ InstanceId string }
		VPCs              []struct{ VpcId string }
		VSwitches         []struct{ VSwitchId string }
		RouteTables       []struct {
			RouteEntries []struct{ DestinationCidrBlock string }
		}
		LoadBalancers []struct {
			LoadBalancerId, LoopbackAddress string
			Listeners                       []struct {
				ListenerPort int
				Status       string
			}
			VServerGroups []struct{ BackendServers []struct{ ServerId string } }
		}
		ACLs, Certificates, EIPs []any
	}
	testkit.Must(0, json.Unmarshal([]byte(body), &state))(t)
	l := state.LoadBalancers[0]
	wantEqual(t, "state",
		[]any{state.Instances[0].InstanceId, state.Instances[0].LoopbackAddress, state.NetworkInterfaces[0].InstanceId, len(state.VPCs),
			len(state.VSwitches), len(state.RouteTables[0].RouteEntries), l.LoadBalancerId, l.Listeners[0].ListenerPort,
			l.VServerGroups[0].BackendServers[0].ServerId, l.LoopbackAddress},
		[]any{"i-1", "127.1.0.1", "i-1", 1, 2, 3, lb, 80, "i-1", "127.1.0.2"})
}

func TestAdminCalls(t *testing.T) {
	t.Parallel()
	a := newAccount(t, emulator.Options{})
	a.newLB()
	a.describeLB(a.newLB())
	read := func(query string) []emulator.Call {
		_, body := get(t, "GET", a.url+"/_emulator/calls"+query, "")
		var answer struct{ Calls []emulator.Call }
		testkit.Must(0, json.Unmarshal([]byte(body), &answer))(t)
		return answer.Calls
	}
	calls := read("")
	wantEqual(t, "calls", sorted(calls, func(c emulator.Call) string {
		return string(c.Kind) + " " + c.Product + " " + c.Action + " " + c.AccessKeyID
	}),
		[]string{"read slb DescribeLoadBalancerAttribute emulator", "write slb CreateLoadBalancer emulator",
			"write slb CreateLoadBalancer emulator"})
	wantEqual(t, "after 2", len(read("?after=2")), 1)
	status, _ := get(t, "DELETE", a.url+"/_emulator/calls", "")
	wantEqual(t, "delete", status, 204)
	wantEqual(t, "empty", len(read("")), 0)
	a.newLB()
	wantEqual(t, "numbers go on", read("")[0].Seq, int64(4))
}

func TestFaults(t *testing.T) {
	t.Parallel()
	a := newAccount(t, emulator.Options{RateLimits: emulator.RateLimitsPublished})
	fault := func(body string) {
		t.Helper()
		status, answer := get(t, "POST", a.url+"/_emulator/faults", body)
		wantEqual(t, answer, status, 204)
	}
	create := func() error {
		r := slbapi.CreateCreateLoadBalancerRequest()
		_, err := a.slb.CreateLoadBalancer(r)
		return err
	}
	total := func() int {
		return testkit.Must(a.slb.DescribeLoadBalancers(slbapi.CreateDescribeLoadBalancersRequest()))(t).TotalCount
	}
	fault(`{"action":"CreateLoadBalancer","code":"SystemBusy","status":449,"after":1,"times":2}`)
	testkit.Must(0, create())(t)
	wantCode(t, create(), "SystemBusy", 449)
	wantCode(t, create(), "SystemBusy", 449)
	testkit.Must(0, create())(t)
	wantEqual(t, "injected errors did nothing", total(), 2)

	fault(`{"action":"*","kind":"write","drop":"before"}`)
	if err := create(); err == nil {
		t.Error("a dropped call succeeded")
	}
	wantEqual(t, "dropped before the write", total(), 2)
	fault(`{"action":"CreateLoadBalancer","drop":"after"}`)
	if err := create(); err == nil {
		t.Error("a dropped call succeeded")
	}
	wantEqual(t, "dropped after the write", total(), 3)
	var dropped []string
	for _, c := range a.Calls(0) {
		if c.Dropped != "" {
			dropped = append(dropped, c.Dropped)
		}
	}
	wantEqual(t, "journal", dropped, []string{"before", "after"})

	_, body := get(t, "GET", a.url+"/_emulator/faults", "")
	var list struct {
		Faults []struct {
			Action       string
			Matched, Hit int
		}
	}
	testkit.Must(0, json.Unmarshal([]byte(body), &list))(t)
	wantEqual(t, "counters", []int{len(list.Faults), list.Faults[0].Matched, list.Faults[0].Hit, list.Faults[1].Hit}, []int{3, 6, 2, 1})
	status, _ := get(t, "DELETE", a.url+"/_emulator/faults", "")
	wantEqual(t, "delete", status, 204)
	for _, bad := range []string{`{}`, `{"action":"*","kind":"both"}`, `{"action":"*","drop":"now"}`, `{"action":"*","latency":"soon"}`,
		`{"action":"*","times":-1}`, `{"acton":"*"}`} {
		status, _ := get(t, "POST", a.url+"/_emulator/faults", bad)
		wantEqual(t, bad, status, 400)
	}
}

func TestFaultLatencyHoldsTheGroup(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newBubble(t, emulator.Options{})
		other := &account{Emulator: a.Emulator, t: t}
		other.connect("emulator.test", direct{a.Handler()})
		a.put("i-1", emulator.InstanceSpec{})
		group := a.newGroup(a.newLB(), "")
		r := httptest.NewRequest(http.MethodPost, "/_emulator/faults",
			strings.NewReader(`{"action":"AddVServerGroupBackendServers","latency":"10s"}`))
		r.RemoteAddr, r.Host = "127.0.0.1:1", "localhost"
		w := httptest.NewRecorder()
		a.Handler().ServeHTTP(w, r)
		wantEqual(t, "fault", w.Code, 204)
		slow := make(chan error)
		go func() { slow <- a.addBackends(group, `[{"ServerId":"i-1","Port":80}]`) }()
		time.Sleep(5 * time.Second)
		wantCode(t, other.addBackends(group, `[{"ServerId":"i-1","Port":81}]`), "BackendServer.configuring", 409)
		testkit.Must(0, <-slow)(t)
		wantEqual(t, "backend servers", other.servers(group), []string{"i-1:80=100"})
	})
}

func TestMetadata(t *testing.T) {
	t.Parallel()
	a := newAccount(t, emulator.Options{})
	a.put("i-1", emulator.InstanceSpec{RAMRole: "emulator-role", Type: "ecs.c7.large"})
	a.put("i-2", emulator.InstanceSpec{HTTPTokens: "required"})
	base := a.url + "/metadata/i-1/latest"
	const meta = "/meta-data/"
	for key, want := range map[string]string{
		"instance-id": "i-1", "region-id": region, "zone-id": "cn-hangzhou-a", "vpc-id": "vpc-emulator", "vswitch-id": "vsw-a",
		"private-ipv4": "10.1.0.1", "instance/instance-type": "ecs.c7.large", "vpc-cidr-block": "10.0.0.0/8",
		"ram/security-credentials/": "emulator-role",
	} {
		status, body := get(t, "GET", base+meta+key, "")
		wantEqual(t, key, []any{status, body}, []any{200, want})
	}
	status, _ := get(t, "GET", base+meta+"nothing", "")
	wantEqual(t, "unknown key", status, 404)
	_, document := get(t, "GET", base+meta+"ram/security-credentials/emulator-role", "")
	var role struct{ AccessKeyId, AccessKeySecret, SecurityToken, Expiration, Code string }
	testkit.Must(0, json.Unmarshal([]byte(document), &role))(t)
	if role.Code != "Success" || role.SecurityToken == "" || !strings.HasPrefix(role.AccessKeyId, "STS.") {
		t.Errorf("role document = %s", document)
	}

	hardened := a.url + "/metadata/i-2/latest"
	status, _ = get(t, "GET", hardened+meta+"instance-id", "")
	wantEqual(t, "without token", status, 403)
	status, token := get(t, "PUT", hardened+"/api/token", "", "X-aliyun-ecs-metadata-token-ttl-seconds", "60")
	wantEqual(t, "token", status, 200)
	status, body := get(t, "GET", hardened+meta+"instance-id", "", "X-aliyun-ecs-metadata-token", token)
	wantEqual(t, "with token", []any{status, body}, []any{200, "i-2"})
	status, _ = get(t, "GET", base+meta+"instance-id", "", "X-aliyun-ecs-metadata-token", token)
	wantEqual(t, "another machine's token", status, 403)
	status, _ = get(t, "PUT", hardened+"/api/token", "", "X-aliyun-ecs-metadata-token-ttl-seconds", "21601")
	wantEqual(t, "long life", status, 400)
}

func TestLockedLoadBalancer(t *testing.T) {
	t.Parallel()
	a := newAccount(t, emulator.Options{})
	a.put("i-1", emulator.InstanceSpec{})
	lb := a.newLB()
	group := a.newGroup(lb, "")
	lock := func(id, body string) int {
		status, _ := get(t, "PUT", a.url+"/_emulator/loadbalancers/"+id, body)
		return status
	}
	wantEqual(t, "lock", lock(lb, `{"LoadBalancerStatus":"locked"}`), 204)
	_, err := a.createTCP(lb, group, 80)
	wantCode(t, err, "ActionNotAllowed", 400)
	wantCode(t, a.addBackends(group, `[{"ServerId":"i-1","Port":80}]`), "LbStatusNotSupport", 400)
	wantEqual(t, "unlock", lock(lb, `{"LoadBalancerStatus":"active"}`), 204)
	a.newTCP(lb, group, 80)
	wantEqual(t, "unknown status", lock(lb, `{"LoadBalancerStatus":"gone"}`), 400)
	wantEqual(t, "unknown load balancer", lock("lb-none", `{"LoadBalancerStatus":"active"}`), 404)
}

// TestAdminRefuses: a misspelled path, method, action or product is refused with what is accepted, and is no call of the OpenAPI.
func TestAdminRefuses(t *testing.T) {
	t.Parallel()
	url := newAccounts(t)
	for _, test := range []struct {
		method, path, body string
		code               int
		want               string
	}{
		{"GET", "/_emulator/setings", "", 404, "no path /_emulator/setings"},
		{"POST", "/_emulator/snapshot", "{}", 405, "POST /_emulator/snapshot: accepted: GET, PUT"},
		{"PUT", "/_emulator/faults", "{}", 405, "accepted: DELETE, GET, POST"},
		{"PUT", "/_emulator/accounts", "{}", 405, "accepted: GET, POST"},
		{"GET", "/_emulator/accounts/1", "", 405, "accepted: DELETE"},
		{"GET", "/_emulator/instances/i-1", "", 405, "accepted: DELETE, PUT"},
		{"POST", "/_emulator/faults", `{"action":"CreateLoadBalencer"}`, 400, `action \"CreateLoadBalencer\": not an action of slb, nlb`},
		{"POST", "/_emulator/faults", `{"action":"DescribeVpcs","product":"slb"}`, 400,
			`action \"DescribeVpcs\": not an action of slb; accepted`},
		{"POST", "/_emulator/faults", `{"action":"*","product":"clb"}`, 400, `product \"clb\"`},
		{"POST", "/_emulator/faults", `{"action":"*","code":"X","status":100}`, 400, "status: 100, accepted: 200 to 599"},
		{"POST", "/_emulator/faults", `{"action":"*","times":-1}`, 400, "times: -1, failItems: 0, accepted: numbers from 0"},
		{"POST", "/_emulator/faults", `{"action":"*","probability":2}`, 400, "probability: 2, accepted: 0 to 1"},
		{"POST", "/_emulator/faults", `{"action":"*","status":"400"}`, 400, "status: string, accepted: a number"},
		{"PUT", "/_emulator/accesskeys/emulator", `{"permissions":["slb:*","Describe*"]}`, 400, `permissions[1]: \"Describe*\", accepted`},
		{"PUT", "/_emulator/instances/i-1", `{"HttpTokens":"on"}`, 400, `HttpTokens \"on\": known are [optional required]`},
		{"PUT", "/_emulator/loadbalancers/lb-1", `{}`, 400, "accepted: LoadBalancerStatus and Tags for a CLB"},
		{"PUT", "/_emulator/loadbalancers/lb-1", `{"LoadBalancerStatus":"locked","OperationLocks":[]}`, 400,
			"accepted: LoadBalancerStatus and Tags for a CLB"},
		{"PUT", "/_emulator/loadbalancers/lb-1", `{"OperationLocks":[]}`, 404, "NLB lb-1 does not exist"},
		{"PUT", "/_emulator/loadbalancers/lb-1", `{"Tags":[]}`, 404, "CLB lb-1 does not exist"},
		{"PUT", "/_emulator/settings", `{"quotas":{"loadBalancers":-1}}`, 400, `quotas.loadBalancers: \"-1\", accepted`},
	} {
		code, answer := get(t, test.method, url+test.path, test.body)
		if code != test.code || !strings.Contains(answer, test.want) {
			t.Errorf("%s %s %s: %d %s, want %d %s", test.method, test.path, test.body, code, answer, test.code, test.want)
		}
	}
	_, calls := get(t, "GET", url+"/_emulator/calls", "")
	wantEqual(t, "calls", strings.Count(calls, `"seq"`), 0)
}

// TestSettingsTogether: two requests at once that change different settings both count.
func TestSettingsTogether(t *testing.T) {
	t.Parallel()
	e := newEmulator(t, emulator.Options{})
	put := func(body io.Reader) {
		r := httptest.NewRequest(http.MethodPut, "/_emulator/settings", body)
		r.RemoteAddr, r.Host = "127.0.0.1:1", "localhost"
		w := httptest.NewRecorder()
		e.Handler().ServeHTTP(w, r)
		wantEqual(t, "settings: "+w.Body.String(), w.Code, 204)
	}
	put(onRead(strings.NewReader(`{"specSalesEnded":true}`), func() { put(strings.NewReader(`{"quotas":{"loadBalancers":3}}`)) }))
	s := e.Settings()
	wantEqual(t, "settings", []any{s.SpecSalesEnded, s.Quotas.LoadBalancers, s.Quotas.ACLs}, []any{true, 3, 50})
}

// TestAdminAnswersNoForeignPage: a browser on this machine is a loopback client, and any page in it can send requests.
func TestAdminAnswersNoForeignPage(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		host, origin string
		open         bool
		want         int
	}{
		"program":                      {"127.0.0.1:18080", "", false, http.StatusOK},
		"localhost":                    {"localhost:18080", "", false, http.StatusOK},
		"IPv6":                         {"[::1]:18080", "", false, http.StatusOK},
		"own console":                  {"localhost:18080", "http://localhost:18080", false, http.StatusOK},
		"another server on a loopback": {"127.0.0.1:18080", "http://localhost:3000", false, http.StatusOK},
		"name that leads here":         {"evil.example", "", false, http.StatusForbidden},
		"foreign page":                 {"127.0.0.1:18080", "http://evil.example", false, http.StatusForbidden},
		"opaque page":                  {"127.0.0.1:18080", "null", false, http.StatusForbidden},
		"open, program":                {"emulator:18080", "", true, http.StatusOK},
		"open, own console":            {"emulator:18080", "http://emulator:18080", true, http.StatusOK},
		"open, foreign page":           {"emulator:18080", "http://evil.example", true, http.StatusForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := testkit.Must(emulator.NewAccounts(emulator.Options{Config: cloud.DefaultConfig(), OpenAdmin: c.open}))(t)
			t.Cleanup(func() { testkit.Check(t, e.Close()) })
			r := httptest.NewRequest(http.MethodGet, "/_emulator/state", nil)
			r.RemoteAddr, r.Host = "127.0.0.1:1", c.host
			if c.origin != "" {
				r.Header.Set("Origin", c.origin)
			}
			w := httptest.NewRecorder()
			e.Handler().ServeHTTP(w, r)
			wantEqual(t, "status", w.Code, c.want)
		})
	}
}
