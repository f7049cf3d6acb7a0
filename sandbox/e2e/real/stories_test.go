//go:build linux && real

package real

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/cluster"
	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/e2e/account"
)

// machines is the cluster of this package for the stories that users run on their accounts.
type machines struct{ *account.StandIn }

// joining is the instance of the machine that joins.
const joining = "i-joining"

// Outside implements account.Cluster: the internet has an address instead of the name of an NLB.
func (machines) Outside(ctx context.Context, target string) (string, error) {
	u, err := url.Parse(target)
	if err != nil {
		return "", err
	}
	if name := u.Hostname(); net.ParseIP(name) == nil {
		lb, _, err := stateOf(ctx, name)
		if err != nil {
			return "", err
		}
		if len(lb.ZoneMappings) == 0 || len(lb.ZoneMappings[0].LoadBalancerAddresses) == 0 {
			return "", fmt.Errorf("%s stands for no address", name)
		}
		target = strings.Replace(target, name, lb.ZoneMappings[0].LoadBalancerAddresses[0].PublicIPv4Address, 1)
	}
	from, err := placeOf(ctx, internetClient)
	if err != nil {
		return "", err
	}
	r, err := from.get(ctx, target)
	return r.Name, err
}

// InPod implements account.Cluster.
func (machines) InPod(ctx context.Context, pod *corev1.Pod, target string) (string, error) {
	from, err := placeOfPod(pod.Name)
	if err != nil {
		return "", err
	}
	r, err := from.get(ctx, target)
	return r.Name, err
}

// Join implements account.Cluster.
func (machines) Join(ctx context.Context, node string) error {
	_, err := ask(ctx, http.MethodPut, "/_emulator/instances/"+joining,
		fmt.Sprintf(`{"InstanceName":%q,"VSwitchId":"vsw-b","SourceDestCheck":true}`, node))
	return err
}

// Release implements account.Cluster.
func (machines) Release(ctx context.Context, _ string) error {
	_, err := ask(ctx, http.MethodDelete, "/_emulator/instances/"+joining, "")
	if err != nil && strings.Contains(err.Error(), http.StatusText(http.StatusNotFound)) {
		return nil
	}
	return err
}

// Official implements account.Cluster.
func (m machines) Official(ctx context.Context, run bool) error { return m.Run(ctx, run) }

// TestAccountStories: what make e2e-cloud shows on an account holds for packets between real machines, too. It is here in the order of the
// files, behind the tests of provider IDs that no manager has set.
func TestAccountStories(t *testing.T) {
	nobodyLeads(t)
	host := strings.TrimPrefix(sandbox.url, "http://")
	environment := map[string]string{
		"ALICLOUD_CLIENT_SCHEME": "HTTP", "SLB_ENDPOINT": host, "NLB_ENDPOINT": host, "VPC_ENDPOINT": host, "ECS_ENDPOINT": host,
		"STS_ENDPOINT": host,
	}
	cloudConfig := filepath.Join(sandbox.dir, "cloud-config.conf")
	connection, err := account.Connect(kubeconfig(), cloudConfig, func(name string) string { return environment[name] })
	if err != nil {
		t.Fatal(err)
	}
	var variables []string
	for name, value := range environment {
		variables = append(variables, name+"="+value)
	}
	official := &account.StandIn{Client: connection.Client, Cloud: connection.Cloud, ClusterID: "clusterid", Poll: look}
	account.New(account.Options{
		Cluster: machines{official}, Client: connection.Client, Cloud: connection.Cloud, VPC: connection.VPC, Zones: twoZones,
		Manager: account.Manager{
			Program: filepath.Join(sandbox.binDir, "cloud-controller-manager"), Kubeconfig: kubeconfig(), CloudConfig: cloudConfig,
			Arguments: []string{"--node-monitor-period=1s", "--node-gone-confirmations=2", "--node-gone-over=1s",
				"--route-reconciliation-period=1s"},
			// It does not end with this process: the kernel would end it with the thread that started it, and those that have been in a
			// namespace do end.
			Environment: variables, Log: filepath.Join(t.TempDir(), "manager.log"),
		},
		Image: cluster.TestServerImage, ClusterCIDR: podCIDR, Poll: look, Patience: storyPatience,
	}).Run(t)
	if _, err := ask(context.WithoutCancel(t.Context()), http.MethodDelete, "/_emulator/instances/"+joining, ""); err == nil {
		t.Error("the instance that joined was left behind")
	}
}

// storyPatience is longer than that of other tests: a machine joins, with containerd and kubelet, and the manager waits for proofs until
// its Node goes.
const storyPatience = 5 * time.Minute

// nobodyLeads waits until no lease of a manager is held: those of earlier tests end with them, or expire.
func nobodyLeads(t *testing.T) {
	t.Helper()
	until(t, "no manager leads", func(ctx context.Context) string {
		for _, name := range []string{"cloud-controller-manager", "ccm"} {
			lease, err := sandbox.client.CoordinationV1().Leases(metav1.NamespaceSystem).Get(ctx, name, metav1.GetOptions{})
			switch {
			case apierrors.IsNotFound(err):
			case err != nil:
				return err.Error()
			case ptr.Deref(lease.Spec.HolderIdentity, "") != "" && lease.Spec.RenewTime != nil &&
				time.Since(lease.Spec.RenewTime.Time) < time.Minute:
				return *lease.Spec.HolderIdentity + " holds " + name
			}
		}
		return ""
	})
}
