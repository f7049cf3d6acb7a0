package provider

import (
	"context"
	"encoding/base64"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/emulatortest"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// TestChangedKeyIsTried: a changed key that the cloud refuses, or that is of another account, is reported, and the old one stays in use; one
// that the cloud accepts is used.
func TestChangedKeyIsTried(t *testing.T) {
	t.Parallel()
	text := func(id, secret string) string {
		encode := base64.StdEncoding.EncodeToString
		return fmt.Sprintf(`{"Global": {"accessKeyID": %q, "accessKeySecret": %q, "region": "cn-hangzhou", "vpcid": "vpc-emulator", "vswitchid": "vsw-a"}}`,
			encode([]byte(id)), encode([]byte(secret)))
	}
	for name, test := range map[string]struct {
		id, secret string
		fault      string
		naming     string // in the event; none: the key is used
	}{
		"unknown":         {id: "nobody", secret: "x", naming: "InvalidAccessKeyId.NotFound"},
		"wrong secret":    {id: "second", secret: "x", naming: "SignatureDoesNotMatch"},
		"switched off":    {id: "off", secret: "off-secret", naming: "InvalidAccessKeyId.Inactive"},
		"another account": {id: "second", secret: "second-secret", fault: `{"action":"DescribeVSwitches","times":0,"body":"{\"RequestId\":\"1\",\"TotalCount\":0,\"PageNumber\":1,\"PageSize\":50,\"VSwitches\":{\"VSwitch\":[]}}"}`, naming: "a key of the account"},
		"accepted":        {id: "second", secret: "second-secret"},
		"may list nothing": {
			id: "second", secret: "second-secret", fault: `{"action":"DescribeVSwitches","code":"Forbidden.RAM","status":403,"times":0}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			accounts := cloud.DefaultConfig()
			accounts.AccessKeys = append(accounts.AccessKeys, cloud.AccessKeyConfig{ID: "second", Secret: "second-secret"}, cloud.AccessKeyConfig{ID: "off", Secret: "off-secret", Disabled: true})
			server := cloudServer{emulatortest.New(t, emulator.Options{Config: accounts})}
			path := filepath.Join(t.TempDir(), "cloud-config.conf")
			write(t, path, text("emulator", "emulator-secret"))
			config, err := ReadConfigFile(path)
			if err != nil {
				t.Fatal(err)
			}
			cloud, kube := New(config, server.environment("")), allowing(true)
			if err := cloud.Connect(t.Context(), kube); err != nil {
				t.Fatal(err)
			}
			cloud.ctx, cloud.kube = t.Context(), kube
			cloud.SetInformers(informers.NewSharedInformerFactory(kube, 0))
			if test.fault != "" {
				server.Fault(test.fault)
			}
			write(t, path, text(test.id, test.secret))
			want := map[bool]string{true: "emulator", false: test.id}[test.naming != ""]
			refresher, _ := cloud.credentials.(alicloud.Refresher)
			err = wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
				keys, err := refresher.Refresh(ctx, alicloud.Credentials{}) // reads the file without a wait
				if err != nil || test.naming == "" {
					return keys.AccessKeyID == want, err
				}
				events, err := kube.CoreV1().Events(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{})
				if err != nil || len(events.Items) == 0 {
					return false, err
				}
				if event := events.Items[0]; event.Reason != reasonInvalidCredentials || !strings.Contains(event.Message, test.naming) {
					t.Errorf("event %s: %q, want one that names %q", event.Reason, event.Message, test.naming)
				}
				return true, nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if keys, err := cloud.credentials.Credentials(t.Context()); err != nil || keys.AccessKeyID != want {
				t.Errorf("key %q, error %v, want %q", keys.AccessKeyID, err, want)
			}
		})
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
		"by the nodes":              {config, "", []*corev1.Node{node}, "", `Global.region: "cn-beijing", but the provider IDs of the nodes are in region "cn-hangzhou"`},
		"by the metadata service":   {config, "i-1", nil, "", `Global.region: "cn-beijing", but this machine is in region "cn-hangzhou"`},
		"without VPC":               {Config{AccessKeyID: keys.AccessKeyID, AccessKeySecret: keys.AccessKeySecret, Region: "cn-beijing"}, "i-1", nil, "", `Global.region: "cn-beijing", but this machine is in region "cn-hangzhou"`},
		"a region that exists":      {otherNodes, "", []*corev1.Node{elsewhere}, empty, `Global.region: "cn-hangzhou", but the provider IDs of the nodes are in region "cn-beijing"`},
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
