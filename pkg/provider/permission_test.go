package provider

import (
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/emulatortest"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// TestConnectWithoutPermission starts under the published policy for nodes without one of its actions, in a cluster whose
// VPC only the instances of its nodes show: what is said names the action, and the start ends only where the VPC cannot
// be known.
func TestConnectWithoutPermission(t *testing.T) {
	t.Parallel()
	byID := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Spec: corev1.NodeSpec{ProviderID: "cn-hangzhou.i-1"}}
	for missing, ends := range map[string]bool{"ecs:DescribeInstances": true, "vpc:DescribeVSwitches": false} {
		t.Run(missing, func(t *testing.T) {
			t.Parallel()
			server := startCloud(t)
			server.Put("i-1", `{"VSwitchId": "vsw-b"}`)
			_, action, _ := strings.Cut(missing, ":")
			if !server.Permit(emulatortest.AccessKeyID, alicloud.FeatureNodes.Policy(action)...) {
				t.Fatal("the emulator does not know the access key")
			}
			var said []string
			logger := funcr.New(func(_, args string) { said = append(said, args) }, funcr.Options{})
			cloud := New(keys, server.environment(""))
			err := cloud.Connect(klog.NewContext(t.Context(), logger), allowing(true, byID))
			if err != nil {
				said = append(said, err.Error())
			}
			if (err != nil) != ends || !strings.Contains(strings.Join(said, "\n"), missing) {
				t.Errorf("Connect = %v, said %q; want an error %t, and something that names %s", err, said, ends, missing)
			}
			if !ends {
				checkPlace(t, cloud, "vpc-emulator", []string{"vsw-b"})
			}
		})
	}
}
