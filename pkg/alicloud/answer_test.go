package alicloud_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/emulatortest"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// answering returns a client of a server that answers each call with what handle writes.
func answering(t *testing.T, handle http.HandlerFunc) *alicloud.Client {
	t.Helper()
	server := httptest.NewServer(handle)
	t.Cleanup(server.Close)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return testkit.Must(alicloud.New(alicloud.Options{
		Region: emulatortest.Region, Credentials: alicloud.StaticCredentials{AccessKeyID: "a", AccessKeySecret: "b"},
		Endpoints: alicloud.Endpoints{SLB: server.URL, NLB: server.URL, VPC: server.URL, ECS: server.URL, PlainHTTP: true}, Transport: transport,
	}))(t)
}

// TestEmptyObjectIsNoAnswer: without a RequestId an answer is not one, whatever else it says. In particular it is no empty list.
func TestEmptyObjectIsNoAnswer(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		status int
		body   string
	}{
		{200, ""}, {200, "{}"}, {200, "null"}, {200, "[]"}, {200, "<html></html>"}, {200, `{"TotalCount":0}`}, {200, `{"RequestId":""}`},
		{404, `{"Code":"InvalidLoadBalancerId.NotFound","Message":"no RequestId"}`}, {404, `{"Code":404,"RequestId":"r"}`}, {503, ""},
	} {
		t.Run(fmt.Sprintf("%d %s", test.status, test.body), func(t *testing.T) {
			t.Parallel()
			client := answering(t, func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(test.status)
				_, _ = w.Write([]byte(test.body))
			})
			for name, read := range map[string]func() error{
				"list": func() error {
					_, err := client.DescribeLoadBalancers(t.Context(), alicloud.LoadBalancerQuery{Name: "a"})
					return err
				},
				"by id":     func() error { _, err := client.DescribeLoadBalancer(t.Context(), "lb-1"); return err },
				"instances": func() error { _, err := client.DescribeInstances(t.Context(), alicloud.InstanceQuery{}); return err },
				"groups":    func() error { _, err := client.DescribeVServerGroups(t.Context(), "lb-1"); return err },
				"write":     func() error { return client.DeleteLoadBalancer(t.Context(), "lb-1") },
			} {
				err := read()
				if !alicloud.IsAmbiguous(err) {
					t.Errorf("%s: %v, want an ambiguous error", name, err)
				}
			}
		})
	}
}

// TestProxyPageIsNamed: the page of a proxy is an error with its HTTP status and without its text, which may quote the signed URL.
func TestProxyPageIsNamed(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusForbidden, http.StatusProxyAuthRequired, http.StatusBadGateway, http.StatusFound} {
		client := answering(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", "/login")
			w.WriteHeader(status)
			_, _ = fmt.Fprintf(w, "<html>%s</html>", r.URL)
		})
		_, err := client.DescribeVSwitches(t.Context(), "vpc-1")
		text := fmt.Sprint(err)
		if !alicloud.IsAmbiguous(err) || !strings.Contains(text, fmt.Sprintf("HTTP %d %s", status, http.StatusText(status))) ||
			strings.Contains(text, "Signature") {
			t.Errorf("a page with status %d becomes %q", status, text)
		}
	}
}

// TestNoProxyThatIsNoRegexpFailsNoCall: NO_PROXY is the transport's, by the rules of Go's httpproxy; no item of it fails a call.
func TestNoProxyThatIsNoRegexpFailsNoCall(t *testing.T) { //nolint:paralleltest // it sets environment variables
	for _, value := range []string{"**.internal", "+.x", "[fd00::1", "10.0.0.0/8,*.svc"} {
		t.Setenv("NO_PROXY", value)
		t.Setenv("HTTP_PROXY", "10.0.0.1:3128")
		c := newCloud(t)
		if _, err := c.DescribeVSwitches(t.Context(), "vpc-emulator"); err != nil {
			t.Errorf("with NO_PROXY=%s: %v", value, err)
		}
	}
}

// TestBadRequestIsDefinite: a server that turns a call down as too long or malformed changed nothing, and would again; one call shows it.
func TestBadRequestIsDefinite(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusRequestURITooLong,
		http.StatusRequestHeaderFieldsTooLarge} {
		calls := 0
		client := answering(t, func(w http.ResponseWriter, _ *http.Request) {
			calls++
			w.WriteHeader(status)
		})
		_, err := client.DescribeInstances(t.Context(), alicloud.InstanceQuery{IDs: []string{"i-1"}})
		if alicloud.IsAmbiguous(err) || !alicloud.IsRefusedParameter(err) || calls != 1 {
			t.Errorf("HTTP %d: ambiguous %t, refused for its parameters %t after %d calls: %v", status, alicloud.IsAmbiguous(err),
				alicloud.IsRefusedParameter(err), calls, err)
		}
		_, err = client.CreateRouteEntries(t.Context(), []alicloud.NewRoute{{TableID: "vtb-1", CIDR: "10.0.0.0/24", InstanceID: "i-1"}})
		if alicloud.IsAmbiguous(err) {
			t.Errorf("HTTP %d: the write may have happened: %v", status, err)
		}
	}
}

// TestAnswerWithoutList: an answer that lacks the list says nothing; everything in it would count as gone.
func TestAnswerWithoutList(t *testing.T) {
	t.Parallel()
	for name, read := range map[string]func(*alicloud.Client) error{
		"instances": func(c *alicloud.Client) error {
			_, err := c.DescribeInstances(t.Context(), alicloud.InstanceQuery{IDs: []string{"i-1"}})
			return err
		},
		"all instances": func(c *alicloud.Client) error {
			_, err := c.DescribeInstances(t.Context(), alicloud.InstanceQuery{})
			return err
		},
		"vSwitches": func(c *alicloud.Client) error { _, err := c.DescribeVSwitches(t.Context(), "vpc-1"); return err },
		"tables":    func(c *alicloud.Client) error { _, err := c.DescribeRouteTables(t.Context(), "vpc-1"); return err },
		"entries": func(c *alicloud.Client) error {
			_, err := c.DescribeRouteEntries(t.Context(), "vtb-1", false)
			return err
		},
		"interfaces": func(c *alicloud.Client) error {
			_, err := c.DescribeNetworkInterfaces(t.Context(), alicloud.NetworkInterfaceQuery{PrivateIPs: []string{"10.0.0.1"}})
			return err
		},
	} {
		if err := read(answering(t, script(`{"RequestId":"1"}`))); !alicloud.IsAmbiguous(err) {
			t.Errorf("%s: %v, want an error that says nothing about any resource", name, err)
		}
	}
}

// TestInstanceIDInAnotherCase: an answer that spells an id in another case is one about that id, and no reason to drop those of all others.
func TestInstanceIDInAnotherCase(t *testing.T) {
	t.Parallel()
	client := answering(t, script(`{"RequestId":"r","TotalCount":2,"Instances":{"Instance":[{"InstanceId":"i-abc"},{"InstanceId":"i-2"}]}}`))
	found, err := client.DescribeInstances(t.Context(), alicloud.InstanceQuery{IDs: []string{"I-ABC", "i-2"}})
	if err != nil || len(found) != 2 {
		t.Errorf("%d instances, %v", len(found), err)
	}
}

// script answers each call with the next of the bodies, and then with the last one again.
func script(bodies ...string) http.HandlerFunc {
	var mu sync.Mutex // guards bodies
	return func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		_, _ = w.Write([]byte(bodies[0]))
		if len(bodies) > 1 {
			bodies = bodies[1:]
		}
	}
}

// TestAnswersAboutAnotherResource: what was not asked for is no answer, and says nothing about what was.
func TestAnswersAboutAnotherResource(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		body string
		read func(*alicloud.Client) error
	}{
		"CLB": {`{"RequestId":"r","LoadBalancerId":"lb-2"}`,
			func(c *alicloud.Client) error { _, err := c.DescribeLoadBalancer(t.Context(), "lb-1"); return err }},
		"CLBs": {`{"RequestId":"r","TotalCount":1,"LoadBalancers":{"LoadBalancer":[{"LoadBalancerId":"lb-2"}]}}`, func(c *alicloud.Client) error {
			_, err := c.DescribeLoadBalancers(t.Context(), alicloud.LoadBalancerQuery{IDs: []string{"lb-1"}})
			return err
		}},
		"vServer group": {`{"RequestId":"r"}`,
			func(c *alicloud.Client) error { _, err := c.DescribeVServerGroup(t.Context(), "rsp-1"); return err }},
		"access list": {`{"RequestId":"r","TotalAclEntry":0}`, func(c *alicloud.Client) error {
			_, err := c.DescribeAccessList(t.Context(), "acl-1")
			return err
		}},
		"listeners": {`{"RequestId":"r","Listeners":[{"LoadBalancerId":"lb-2","ListenerPort":80,"ListenerProtocol":"tcp"}]}`,
			func(c *alicloud.Client) error {
				_, err := c.DescribeListeners(t.Context(), "lb-1")
				return err
			}},
		"vSwitches": {`{"RequestId":"r","TotalCount":1,"VSwitches":{"VSwitch":[{"VpcId":"vpc-2"}]}}`,
			func(c *alicloud.Client) error { _, err := c.DescribeVSwitches(t.Context(), "vpc-1"); return err }},
		"tables": {`{"RequestId":"r","TotalCount":1,"RouterTableList":{"RouterTableListType":[{"VpcId":"vpc-2"}]}}`,
			func(c *alicloud.Client) error {
				_, err := c.DescribeRouteTables(t.Context(), "vpc-1")
				return err
			}},
		"route entries": {`{"RequestId":"r","RouteEntrys":{"RouteEntry":[{"RouteTableId":"vtb-2"}]}}`, func(c *alicloud.Client) error {
			_, err := c.DescribeRouteEntries(t.Context(), "vtb-1", false)
			return err
		}},
		"EIPs": {`{"RequestId":"r","TotalCount":1,"EipAddresses":{"EipAddress":[{"InstanceId":"lb-2"}]}}`, func(c *alicloud.Client) error {
			_, err := c.DescribeEIPs(t.Context(), alicloud.EIPOfLoadBalancer, "lb-1")
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := test.read(answering(t, script(test.body))); !alicloud.IsAmbiguous(err) || !strings.Contains(err.Error(), "request r") {
				t.Errorf("%v, want an ambiguous error with the id of the request", err)
			}
		})
	}
}

// TestPagesAddUp: a list is whole or an error.
func TestPagesAddUp(t *testing.T) {
	t.Parallel()
	page := func(total string, ids ...string) string {
		var lbs []string
		for _, id := range ids {
			lbs = append(lbs, fmt.Sprintf(`{"LoadBalancerId":%q}`, id))
		}
		return fmt.Sprintf(`{"RequestId":"r",%s"LoadBalancers":{"LoadBalancer":[%s]}}`, total, strings.Join(lbs, ","))
	}
	for name, test := range map[string]struct {
		bodies []string
		want   int // -1: an error
	}{
		"one page":                              {[]string{page(`"TotalCount":2,`, "a", "b")}, 2},
		"nothing":                               {[]string{page(`"TotalCount":0,`)}, 0},
		"two pages":                             {[]string{page(`"TotalCount":3,`, "a", "b"), page(`"TotalCount":3,`, "c")}, 3},
		"empty page before the end":             {[]string{page(`"TotalCount":3,`, "a", "b"), page(`"TotalCount":3,`)}, -1},
		"empty list of one":                     {[]string{page(`"TotalCount":1,`)}, -1},
		"more than counted":                     {[]string{page(`"TotalCount":1,`, "a", "b")}, -1},
		"no count: pages end with an empty one": {[]string{page("", "a", "b"), page("", "c"), page("")}, 3},
		"no count and nothing":                  {[]string{page("")}, 0},
		"shrinks while it is read": {[]string{
			page(`"TotalCount":3,`, "a", "b"), page(`"TotalCount":2,`), page(`"TotalCount":2,`, "b", "c"),
		}, 2},
		"shrinks each time": {[]string{
			page(`"TotalCount":9,`, "a"), page(`"TotalCount":8,`), page(`"TotalCount":7,`, "a"), page(`"TotalCount":6,`),
			page(`"TotalCount":5,`, "a"), page(`"TotalCount":4,`),
		}, -1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found, err := answering(t, script(test.bodies...)).DescribeLoadBalancers(t.Context(), alicloud.LoadBalancerQuery{})
			if test.want < 0 && !alicloud.IsAmbiguous(err) || test.want >= 0 && (err != nil || len(found) != test.want) {
				t.Errorf("%d items and %v, want %d", len(found), err, test.want)
			}
		})
	}
}

// TestListenerWithoutPortIsLeftOut: one that cannot be identified is left out, and hides none of the others.
func TestListenerWithoutPortIsLeftOut(t *testing.T) {
	t.Parallel()
	c := answering(t, script(`{"RequestId":"r","TotalCount":3,"Listeners":[
		{"LoadBalancerId":"lb-1","ListenerProtocol":"tcp"},
		{"LoadBalancerId":"lb-1","ListenerPort":80,"ListenerProtocol":"tcp","AclId":"acl-1","AclIds":["acl-2","acl-1"]},
		{"LoadBalancerId":"lb-2","ListenerPort":443,"ListenerProtocol":"https"}]}`))
	found := testkit.Must(c.DescribeListeners(t.Context(), "lb-1", "lb-2"))(t)
	if len(found["lb-1"]) != 1 || len(found["lb-2"]) != 1 {
		t.Fatalf("listeners %v, want one of each CLB", found)
	}
	if ids := found["lb-1"][0].Attributes.ACLIDs(); !slices.Equal(ids, []string{"acl-1", "acl-2"}) {
		t.Errorf("access lists %v, want those of AclIds", ids)
	}
}

// TestListenersAddUp: fewer listeners than the count are no answer.
func TestListenersAddUp(t *testing.T) {
	t.Parallel()
	c := answering(t,
		script(`{"RequestId":"r","TotalCount":2,"Listeners":[{"LoadBalancerId":"lb-1","ListenerPort":80,"ListenerProtocol":"tcp"}]}`))
	if found, err := c.DescribeListeners(t.Context(), "lb-1"); !alicloud.IsAmbiguous(err) {
		t.Errorf("%v and %v, want an ambiguous error", found, err)
	}
}

// TestInstancesAddUp: half a list of instances or network interfaces is no answer, or the other half would count as released.
func TestInstancesAddUp(t *testing.T) {
	t.Parallel()
	half, empty := `{"RequestId":"r","TotalCount":2,"Instances":{"Instance":[{"InstanceId":"i-1"}]}}`, `{"RequestId":"r","TotalCount":2,"Instances":{"Instance":[]}}`
	for name, query := range map[string]alicloud.InstanceQuery{"by id": {IDs: []string{"i-1", "i-2"}},
		"by address": {PrivateIPs: []string{"10.0.0.1"}}} {
		if found, err := answering(t, script(half, empty)).DescribeInstances(t.Context(), query); !alicloud.IsAmbiguous(err) {
			t.Errorf("instances %s: %v and %v, want an ambiguous error", name, found, err)
		}
	}
	interfaces := `{"RequestId":"r","TotalCount":1,"NetworkInterfaceSets":{"NetworkInterfaceSet":[]}}`
	found, err := answering(t, script(interfaces)).DescribeNetworkInterfaces(t.Context(),
		alicloud.NetworkInterfaceQuery{IDs: []string{"eni-1"}})
	if !alicloud.IsAmbiguous(err) {
		t.Errorf("interfaces: %v and %v, want an ambiguous error", found, err)
	}
}
