package emulator_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"testing"
)

// in are the parameters of a call.
type in map[string]string

func (p in) with(more in) in {
	merged := maps.Clone(p)
	maps.Copy(merged, more)
	return merged
}

// nlbCall makes a call of NLB and returns its answer; it fails the test unless the call succeeds.
func (a *account) nlbCall(action string, params in) map[string]any {
	a.t.Helper()
	return a.product("nlb", action, params)
}

func (a *account) product(product, action string, params in) map[string]any {
	a.t.Helper()
	body, err := a.call(product, action, params)
	if err != nil {
		a.t.Fatalf("%s: %v", action, err)
	}
	var answer map[string]any
	if err := json.Unmarshal([]byte(body), &answer); err != nil {
		a.t.Fatal(err)
	}
	return answer
}

// refused checks that a call of NLB is refused with a code.
func (a *account) refused(action string, params in, code string, status int) {
	a.t.Helper()
	_, err := a.call("nlb", action, params)
	wantCode(a.t, err, code, status)
}

// at returns a value of an answer, by field names and indexes.
func at(t *testing.T, v any, path ...any) any {
	t.Helper()
	for _, step := range path {
		switch step := step.(type) {
		case string:
			m, ok := v.(map[string]any)
			if !ok {
				t.Fatalf("%v: no object at %q", path, step)
			}
			v = m[step]
		case int:
			l, ok := v.([]any)
			if !ok || step >= len(l) {
				t.Fatalf("%v: no item %d", path, step)
			}
			v = l[step]
		}
	}
	return v
}

func text(t *testing.T, v any, path ...any) string {
	t.Helper()
	return fmt.Sprint(at(t, v, path...))
}

var newNLB = twoZones.with(in{"AddressType": "Intranet", "VpcId": "vpc-emulator", "LoadBalancerName": "nlb-under-test"})

func (a *account) newNLB(more in) string {
	a.t.Helper()
	return text(a.t, a.nlbCall("CreateLoadBalancer", newNLB.with(more)), "LoadbalancerId")
}

func (a *account) nlb(id string) map[string]any {
	a.t.Helper()
	return a.nlbCall("GetLoadBalancerAttribute", in{"LoadBalancerId": id})
}

func (a *account) newNLBGroup(more in) string {
	a.t.Helper()
	params := in{"ServerGroupName": "group", "VpcId": "vpc-emulator"}
	return text(a.t, a.nlbCall("CreateServerGroup", params.with(more)), "ServerGroupId")
}

func (a *account) newNLBListener(lb, group string, port int, more in) string {
	a.t.Helper()
	params := in{"LoadBalancerId": lb, "ServerGroupId": group, "ListenerPort": strconv.Itoa(port), "ListenerProtocol": "TCP"}
	return text(a.t, a.nlbCall("CreateListener", params.with(more)), "ListenerId")
}

func (a *account) jobState(id string) string {
	a.t.Helper()
	return text(a.t, a.nlbCall("GetJobStatus", in{"JobId": id}), "Status")
}
