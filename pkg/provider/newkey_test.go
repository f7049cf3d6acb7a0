package provider

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/emulatortest"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// TestChangedKeyIsTried: a changed key that the cloud refuses, or that is of another account, is reported, and the old one stays in use;
// one that the cloud accepts is used.
func TestChangedKeyIsTried(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		id, secret string
		fault      string
		naming     string // in the event; none: the key is used
	}{
		"unknown":      {id: "nobody", secret: "x", naming: "InvalidAccessKeyId.NotFound"},
		"wrong secret": {id: "second", secret: "x", naming: "SignatureDoesNotMatch"},
		"switched off": {id: "off", secret: "off-secret", naming: "InvalidAccessKeyId.Inactive"},
		"another account": {id: "second", secret: "second-secret",
			fault: `{"action":"DescribeVSwitches","times":0,"body":"{\"RequestId\":\"1\",\"TotalCount\":0,\"PageNumber\":1,\"PageSize\":50,\"VSwitches\":{\"VSwitch\":[]}}"}`, naming: "a key of the account"},
		"accepted": {id: "second", secret: "second-secret"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			accounts := cloud.DefaultConfig()
			accounts.AccessKeys = append(accounts.AccessKeys, cloud.AccessKeyConfig{ID: "second", Secret: "second-secret"},
				cloud.AccessKeyConfig{ID: "off", Secret: "off-secret", Disabled: true})
			server := cloudServer{emulatortest.New(t, emulator.Options{Config: accounts})}
			file := newKeyFile(t, server.environment(""))
			if test.fault != "" {
				server.Fault(test.fault)
			}
			file.change(t, test.id, test.secret, test.naming)
		})
	}
}

// TestChangedKeyOfAnotherAccount: the call that tries a key shows nothing of the account where the key may not make it, and neither where
// the VPC is shared with the other account, which then sees its vSwitches, too. Such a key is used if it belongs to the account of the old
// one, or if that cannot be determined.
func TestChangedKeyOfAnotherAccount(t *testing.T) {
	t.Parallel()
	restricted := func(id string) []cloud.AccessKeyConfig {
		return []cloud.AccessKeyConfig{{ID: id, Secret: id + "-secret", Permissions: []string{"slb:*"}}}
	}
	const first, second = "1234567890123456", "2345678901234567"
	const fault = `{"action":"GetCallerIdentity","code":"ServiceUnavailable","status":503,"times":0}`
	for name, test := range map[string]struct {
		id       string
		faultsOf string // the account that does not answer who asks
		naming   string // in the event; none: the key is used
	}{
		"same account":                     {id: "same"},
		"account that shares the VPC":      {id: "sharing", naming: "belongs to account " + second + ", and the one in use to account " + first},
		"another account":                  {id: "other", naming: "belongs to account " + second + ", and the one in use to account " + first},
		"nothing is known of the new key":  {id: "other", faultsOf: second},
		"nothing is known of the old key":  {id: "other", faultsOf: first},
		"nothing is known of the same key": {id: "same", faultsOf: first},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := cloud.DefaultConfig()
			config.AccountID, config.AccessKeys = first, append(config.AccessKeys, restricted("same")...)
			accounts := testkit.Must(emulator.NewAccounts(emulator.Options{Config: config}))(t)
			server := httptest.NewServer(accounts.Handler())
			t.Cleanup(func() {
				server.Close()
				testkit.Must(0, accounts.Close())(t)
			})
			other := cloud.DefaultConfig()
			other.AccountID, other.AccessKeys = second, append(restricted("other"), cloud.AccessKeyConfig{ID: "sharing", Secret: "sharing-secret"})
			post(t, server.URL+"/_emulator/accounts", string(testkit.Must(json.Marshal(other))(t)))
			if test.faultsOf != "" {
				post(t, server.URL+"/accounts/"+test.faultsOf+"/_emulator/faults", fault)
			}
			newKeyFile(t, environmentAt(server.URL, "")).change(t, test.id, test.id+"-secret", test.naming)
		})
	}
}

func post(t *testing.T, url, body string) {
	t.Helper()
	answer, err := http.Post(url, "application/json", strings.NewReader(body)) //nolint:gosec // a server of this test
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode/100 != 2 {
		t.Fatalf("POST %s: %s", url, answer.Status)
	}
}

// keyFile is a connected manager that reads its key from a cloud-config, which a test changes.
type keyFile struct {
	path  string
	cloud *Cloud
	kube  *fake.Clientset
}

// newKeyFile connects with the key of the emulator.
func newKeyFile(t *testing.T, env Environment) *keyFile {
	t.Helper()
	f := &keyFile{path: filepath.Join(t.TempDir(), "cloud-config.conf"), kube: allowing(true)}
	f.write(t, "emulator", "emulator-secret")
	f.cloud = New(testkit.Must(ReadConfigFile(f.path))(t), env)
	if err := f.cloud.Connect(t.Context(), f.kube); err != nil {
		t.Fatal(err)
	}
	f.cloud.ctx, f.cloud.kube = t.Context(), f.kube
	f.cloud.SetInformers(informers.NewSharedInformerFactory(f.kube, 0))
	return f
}

func (f *keyFile) write(t *testing.T, id, secret string) {
	t.Helper()
	encode := base64.StdEncoding.EncodeToString
	write(t, f.path,
		fmt.Sprintf(`{"Global": {"accessKeyID": %q, "accessKeySecret": %q, "region": "cn-hangzhou", "vpcid": "vpc-emulator", "vswitchid": "vsw-a"}}`,
			encode([]byte(id)), encode([]byte(secret))))
}

// change writes a key to the file, and waits until it is in use, or until an event with the text naming says why it is not.
func (f *keyFile) change(t *testing.T, id, secret, naming string) {
	t.Helper()
	f.write(t, id, secret)
	want := map[bool]string{true: "emulator", false: id}[naming != ""]
	refresher, _ := f.cloud.credentials.(alicloud.Refresher)
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		keys, err := refresher.Refresh(ctx, alicloud.Credentials{}) // reads the file without a wait
		if err != nil || naming == "" {
			return keys.AccessKeyID == want, err
		}
		events, err := f.kube.CoreV1().Events(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{})
		if err != nil || len(events.Items) == 0 {
			return false, err
		}
		if event := events.Items[0]; event.Reason != reasonInvalidCredentials || !strings.Contains(event.Message, naming) {
			t.Errorf("event %s: %q, want one that names %q", event.Reason, event.Message, naming)
		}
		return true, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if keys, err := f.cloud.credentials.Credentials(t.Context()); err != nil || keys.AccessKeyID != want {
		t.Errorf("key %q, error %v, want %q", keys.AccessKeyID, err, want)
	}
}

// TestWrongRegionIsCalledOne: where the cluster is known to be in another region, the error is about the region, and not about what is
// missing there.
func TestWrongRegionIsCalledOne(t *testing.T) {
	t.Parallel()
	const empty = `{"action":"DescribeVSwitches","times":0,"body":"{\"RequestId\":\"1\",\"TotalCount\":0,\"PageNumber\":1,\"PageSize\":50,\"VSwitches\":{\"VSwitch\":[]}}"}`
	config := keys
	config.Region, config.VPCID, config.VSwitchIDs = "cn-beijing", "vpc-emulator", []string{"vsw-a"}
	unknownVPC := config
	unknownVPC.Region, unknownVPC.VPCID = "cn-hangzhou", "vpc-none"
	otherNodes := config
	otherNodes.Region = "cn-hangzhou"
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Spec: corev1.NodeSpec{ProviderID: "cn-hangzhou.i-1"}}
	elsewhere := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n2"}, Spec: corev1.NodeSpec{ProviderID: "cn-beijing.i-2"}}
	for name, test := range map[string]struct {
		config   Config
		instance string
		nodes    []*corev1.Node
		fault    string
		want     string
	}{
		"by the nodes": {config, "", []*corev1.Node{node}, "",
			`Global.region: "cn-beijing", but the provider IDs of the nodes are in region "cn-hangzhou"`},
		"by the metadata service": {config, "i-1", nil, "", `Global.region: "cn-beijing", but this machine is in region "cn-hangzhou"`},
		"without VPC": {Config{AccessKeyID: keys.AccessKeyID, AccessKeySecret: keys.AccessKeySecret, Region: "cn-beijing"}, "i-1",
			nil, "", `Global.region: "cn-beijing", but this machine is in region "cn-hangzhou"`},
		"a region that exists": {otherNodes, "", []*corev1.Node{elsewhere}, empty,
			`Global.region: "cn-hangzhou", but the provider IDs of the nodes are in region "cn-beijing"`},
		"nothing is known":          {config, "", nil, "", `Global.`},
		"right region, another VPC": {unknownVPC, "i-1", []*corev1.Node{node}, "", `Global.vpcid: "vpc-none"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := startCloud(t)
			server.Put("i-1", `{"PrivateIpAddress": "10.1.7.7"}`)
			if test.fault != "" {
				server.Fault(test.fault)
			}
			kube := allowing(true)
			for _, node := range test.nodes {
				if err := kube.Tracker().Add(node.DeepCopy()); err != nil {
					t.Fatal(err)
				}
			}
			err := New(test.config, server.environment(test.instance)).Connect(t.Context(), kube)
			if err == nil || !strings.HasPrefix(err.Error(), test.want) || !strings.Contains(err.Error(), "accepted: ") {
				t.Errorf("error %v, want one that begins with %s", err, test.want)
			}
		})
	}
}
