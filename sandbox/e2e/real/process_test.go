//go:build linux && real

package real

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/alicloud-ccm/cloud-provider-alicloud/deploy"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/cluster"
	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/e2e/clouds"
	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/identity"
)

// logTail is how much of the manager's log a failed test shows.
const logTail = 6 << 10

// manager runs beside the machines, with the published role, so that a test can lead it to another cloud.
type manager struct {
	kubeconfig, config, log string
	gateway                 *clouds.Gateway
	denied                  string // a cloud that shows no instance
	environment             []string

	cmd   *exec.Cmd
	ended chan struct{}
}

// newManager prepares a manager, and starts none.
func newManager(t *testing.T) *manager {
	t.Helper()
	leavesNothing(t)
	manifest, err := deploy.Files.ReadFile("ccm.yaml")
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	t.Cleanup(func() { kubectl(t, string(manifest), "delete", "--ignore-not-found", "-f", "-") })
	as, err := identity.Grant(t.Context(), identity.Options{Client: sandbox.client, Config: config, Manifest: manifest, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	return &manager{
		kubeconfig: as.Kubeconfig, config: filepath.Join(dir, "cloud-config.conf"), log: filepath.Join(dir, "log"),
		gateway: clouds.NewGateway(t, sandbox.url),
		denied:  clouds.Denied(t),
	}
}

// configure writes the cloud-config: an access key, and the route tables to manage.
func (m *manager) configure(t *testing.T, id, secret, tables string) {
	t.Helper()
	encode := base64.StdEncoding.EncodeToString
	content, err := json.Marshal(map[string]any{"Global": map[string]string{
		"accessKeyID": encode([]byte(id)), "accessKeySecret": encode([]byte(secret)), "region": cluster.Region,
		"vpcid": "vpc-emulator", "vswitchid": "cn-hangzhou-a:vsw-a", "routeTableIDs": tables,
	}})
	if err != nil {
		t.Fatal(err)
	}
	m.write(t, string(content))
}

func (m *manager) write(t *testing.T, content string) {
	t.Helper()
	if err := os.WriteFile(m.config, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// start runs the manager with flags that make it check often and delete soon, so that a mistake shows early. It ends with the test.
func (m *manager) start(t *testing.T) {
	t.Helper()
	log, err := os.OpenFile(m.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	m.cmd = exec.Command(filepath.Join(sandbox.binDir, "cloud-controller-manager"),
		"--cloud-provider=alicloud", "--cloud-config="+m.config, "--kubeconfig="+m.kubeconfig, "--cluster-cidr="+podCIDR,
		"--leader-elect=false", "--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", testkit.FreePort(t)),
		"--node-monitor-period=1s", "--node-gone-confirmations=2", "--node-gone-over=1s", "--node-deletion-interval=15s",
		"--route-reconciliation-period=1s")
	m.cmd.Env = append(os.Environ(), "ALICLOUD_CLIENT_SCHEME=HTTP",
		"SLB_ENDPOINT="+m.gateway.Address, "NLB_ENDPOINT="+m.gateway.Address, "VPC_ENDPOINT="+m.gateway.Address,
		"ECS_ENDPOINT="+m.gateway.Address)
	m.cmd.Env = append(m.cmd.Env, m.environment...)
	m.cmd.Stdout, m.cmd.Stderr = log, log
	if err := m.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended, cmd := make(chan struct{}), m.cmd
	m.ended = ended
	go func() {
		defer close(ended)
		_ = cmd.Wait() // the log says why
	}()
}

// startManager starts a manager with a valid key, which reads the quotas of the account. It ends with the test.
func startManager(t *testing.T) *manager {
	t.Helper()
	m := newManager(t)
	m.environment = []string{"QUOTAS_ENDPOINT=" + m.gateway.Address}
	dropRoutes(t)
	m.configure(t, cluster.AccessKeyID, cluster.AccessKeySecret, systemTable)
	m.start(t)
	t.Cleanup(func() { m.end(t) })
	return m
}

// restart kills the manager and starts another one.
func (m *manager) restart(t *testing.T) {
	t.Helper()
	m.kill(t)
	m.start(t)
}

// dropRoutes deletes what other managers have left, whose routes would not be those of the next one.
func dropRoutes(t *testing.T) {
	t.Helper()
	client := cloudClient(t)
	entries, err := client.DescribeRouteEntries(t.Context(), systemTable, false)
	if err == nil && len(entries) > 0 {
		_, err = client.DeleteRouteEntries(t.Context(), slices.DeleteFunc(entries, func(e alicloud.RouteEntry) bool {
			return e.Type != "Custom"
		}))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// join lets a machine join in a zone. [forget] removes it.
func join(t *testing.T, i int, vSwitch string) {
	t.Helper()
	order(t, http.MethodPut, "/_emulator/instances/"+instanceID(i),
		fmt.Sprintf(`{"InstanceName":%q,"VSwitchId":%q,"SourceDestCheck":true}`, nodeName(i), vSwitch))
}

// forget removes what is left of a machine that joined.
func forget(t *testing.T, i int) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	_, _ = ask(ctx, http.MethodDelete, "/_emulator/instances/"+instanceID(i), "")        // it may be gone
	_ = sandbox.client.CoreV1().Nodes().Delete(ctx, nodeName(i), metav1.DeleteOptions{}) // so may this
	deleteRoutesOf(t, instanceID(i))
}

// kill ends the manager as a power cut does.
func (m *manager) kill(t *testing.T) {
	t.Helper()
	select {
	case <-m.ended:
		t.Errorf("the manager has ended by itself")
	default:
		m.signal(t, syscall.SIGKILL)
		<-m.ended
	}
}

func (m *manager) signal(t *testing.T, signal syscall.Signal) {
	t.Helper()
	if err := m.cmd.Process.Signal(signal); err != nil {
		t.Error(err)
	}
}

// end kills the manager at the end of a test, and shows its log where that helps.
func (m *manager) end(t *testing.T) {
	t.Helper()
	if m.cmd != nil {
		m.kill(t)
	}
	if log, err := os.ReadFile(m.log); t.Failed() {
		t.Logf("the manager's last lines (%v):\n%s", err, log[max(0, len(log)-logTail):])
	}
}

// lead leads the manager's calls to another cloud, with faults in the own one. On the way there, the cloud is not honest for a moment.
func (m *manager) lead(t *testing.T, url string, faults ...map[string]any) {
	t.Helper()
	m.gateway.Lead(t, m.denied)
	order(t, "DELETE", "/_emulator/faults", "")
	for _, fault := range faults {
		text, err := json.Marshal(fault)
		if err != nil {
			t.Fatal(err)
		}
		order(t, "POST", "/_emulator/faults", string(text))
	}
	m.gateway.Lead(t, url)
}

// asks waits until the manager has made so many calls more.
func (m *manager) asks(t *testing.T, calls int64) {
	t.Helper()
	before := m.gateway.Passed()
	until(t, "the manager asks the cloud", func(context.Context) string {
		if n := m.gateway.Passed() - before; n < calls {
			return fmt.Sprintf("it has made %d calls", n)
		}
		return ""
	})
}
