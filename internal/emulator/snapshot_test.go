package emulator_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aliyun/alibaba-cloud-sdk-go/sdk/requests"
	slbapi "github.com/aliyun/alibaba-cloud-sdk-go/services/slb"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
)

func TestSnapshot(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "state.json")
	first := newAccount(t, emulator.Options{Snapshot: path})
	first.put("i-1", emulator.InstanceSpec{})
	lb := first.newLB()
	first.newTCP(lb, first.newGroup(lb, `[{"ServerId":"i-1","Port":80}]`), 80)
	testkit.Must(0, first.startListener(lb, 80))(t)
	testkit.Must(first.createRoute("10.244.0.0/24", "i-1"))(t)
	_, before := get(t, "GET", first.url+"/_emulator/state", "")
	testkit.Must(0, first.Close())(t)

	second := newAccount(t, emulator.Options{Snapshot: path})
	_, after := get(t, "GET", second.url+"/_emulator/state", "")
	var want, got any
	testkit.Must(0, json.Unmarshal([]byte(before), &want))(t)
	testkit.Must(0, json.Unmarshal([]byte(after), &got))(t)
	wantEqual(t, "state", got, want)
	// What was there counts: addresses, destinations and ports are taken.
	wantEqual(t, "next address", second.put("i-2", emulator.InstanceSpec{}).PrivateIP, "10.1.0.3")
	_, err := second.createRoute("10.244.0.0/24", "i-2")
	wantCode(t, err, "InvalidCIDRBlock.Duplicate", 400)
	r := slbapi.CreateCreateLoadBalancerTCPListenerRequest()
	r.LoadBalancerId, r.ListenerPort, r.BackendServerPort = lb, requests.NewInteger(80), requests.NewInteger(80)
	_, err = second.slb.CreateLoadBalancerTCPListener(r)
	wantCode(t, err, "ListenerAlreadyExists", 400)
	testkit.Must(0, second.Close())(t)

	testkit.Must(0, os.WriteFile(path, []byte(`{"Version":99}`), 0o600))(t)
	if e, err := emulator.New(emulator.Options{Snapshot: path}); err == nil {
		t.Error("a snapshot of another version is accepted")
		testkit.Must(0, e.Close())(t)
	}
	// At the end it would be too late to find out.
	if e, err := emulator.New(emulator.Options{Snapshot: filepath.Join(path, "below a file")}); err == nil {
		t.Error("a file that cannot be written is accepted")
		testkit.Must(0, e.Close())(t)
	}
}

// TestBadSnapshots: a snapshot that somebody has edited is refused with the reason and changes nothing, and does not bring the emulator
// down.
func TestBadSnapshots(t *testing.T) {
	t.Parallel()
	a := newAccount(t, emulator.Options{})
	a.put("i-1", emulator.InstanceSpec{})
	lb := a.newLB()
	a.newTCP(lb, a.newGroup(lb, `[{"ServerId":"i-1","Port":80}]`), 80)
	saved := string(testkit.Must(a.Snapshot())(t))
	_, before := get(t, "GET", a.url+"/_emulator/state", "")
	for want, edit := range map[string]func(map[string]any){
		"entry 0 of []*cloud.VPC is null": func(s map[string]any) { s["VPCs"] = []any{nil} },
		`listener 0: protocol \"quic\", accepted: tcp`: func(s map[string]any) {
			s["LoadBalancers"].([]any)[0].(map[string]any)["Listeners"].([]any)[0].(map[string]any)["Protocol"] = "quic"
		},
		`listener l: ProxyProtocolV2 \"x\" is not JSON`: func(s map[string]any) {
			s["NLBListeners"] = []any{map[string]any{"ID": "l", "ProxyProtocolV2": "x"}}
		},
		"a rule of security group g has no policy": func(s map[string]any) {
			s["SecurityGroups"] = []any{map[string]any{"ID": "g", "Rules": []any{nil}}}
		},
		"listener 0 is null": func(s map[string]any) {
			s["LoadBalancers"].([]any)[0].(map[string]any)["Listeners"] = []any{nil}
		},
		"backend server of group g is null": func(s map[string]any) {
			s["NLBGroups"] = []any{map[string]any{"ID": "g", "Servers": []any{nil}}}
		},
		`ID \"vpc-emulator\", which is`:       func(s map[string]any) { s["VPCs"] = append(s["VPCs"].([]any), s["VPCs"].([]any)...) },
		`ID \"\", which is empty`:             func(s map[string]any) { s["VPCs"] = []any{map[string]any{}} },
		"instance i-1 has no primary":         func(s map[string]any) { delete(s, "Interfaces") },
		`region \"cn-beijing\", accepted`:     func(s map[string]any) { s["Region"] = "cn-beijing" },
		"VSwitches: number, accepted: a list": func(s map[string]any) { s["VSwitches"] = 7 },
		"forward only":                        func(s map[string]any) { s["Time"] = "2926-01-01T00:00:00Z" },
		"accepted: 1":                         func(s map[string]any) { s["Version"] = 2 },
	} {
		var edited map[string]any
		testkit.Must(0, json.Unmarshal([]byte(saved), &edited))(t)
		edit(edited)
		code, answer := get(t, "PUT", a.url+"/_emulator/snapshot", string(testkit.Must(json.Marshal(edited))(t)))
		if code != 400 || !strings.Contains(answer, want) {
			t.Errorf("%d %s, want %s", code, answer, want)
		}
		_, after := get(t, "GET", a.url+"/_emulator/state", "")
		wantEqual(t, "state after "+want, after, before)
	}
}

// TestSnapshotsWithoutTables: whatever is not in a snapshot does not exist; what refers to it can still be read.
func TestSnapshotsWithoutTables(t *testing.T) {
	t.Parallel()
	a := newAccount(t, emulator.Options{})
	a.put("i-1", emulator.InstanceSpec{})
	lb := a.newLB()
	a.newTCP(lb, a.newGroup(lb, `[{"ServerId":"i-1","Port":80}]`), 80)
	var saved map[string]any
	testkit.Must(0, json.Unmarshal(testkit.Must(a.Snapshot())(t), &saved))(t)
	for name := range saved {
		if name == "Version" || name == "Interfaces" {
			continue
		}
		rest := maps.Clone(saved)
		delete(rest, name)
		testkit.Must(0, a.Restore(testkit.Must(json.Marshal(rest))(t)))(t)
		code, answer := get(t, "GET", a.url+"/_emulator/state", "")
		wantEqual(t, "state without "+name+": "+answer, code, 200)
		for action, product := range map[string]string{"DescribeInstances": "ecs", "DescribeNetworkInterfaces": "ecs", "DescribeVSwitches": "vpc",
			"DescribeVpcs": "vpc", "DescribeLoadBalancers": "slb"} {
			testkit.Must(a.call(product, action, nil))(t)
		}
	}
}

// TestSnapshotOfLater: a snapshot of an account whose clock is ahead sets the clock forward, so that nothing is from the future, and
// changes that were under way end when they would have, whatever the settle time of the new account is.
func TestSnapshotOfLater(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		first, second := newBubble(t, emulator.Options{Settle: time.Minute}), newBubble(t, emulator.Options{})
		testkit.Must(0, first.Advance(48*time.Hour))(t)
		testkit.Must(first.call("vpc", "CreateRouteTable", map[string]string{"VpcId": "vpc-emulator", "RouteTableName": "slow"}))(t)
		time.Sleep(20 * time.Second)
		saved := testkit.Must(first.Snapshot())(t)
		for range 2 { // a test restores before each of its cases
			testkit.Must(0, second.Restore(saved))(t)
			wantEqual(t, "time of the cloud", second.Now().Sub(first.Now()).Round(time.Second), time.Duration(0))
			wantEqual(t, "status at first", second.tableStatus("slow"), "Pending")
		}
		changed, start := second.Changed(), time.Now()
		<-changed
		wantEqual(t, "end", time.Since(start), 40*time.Second)
		wantEqual(t, "status then", second.tableStatus("slow"), "Available")
	})
}
