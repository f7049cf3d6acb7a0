package emulator_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

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
}
