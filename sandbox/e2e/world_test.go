//go:build unix && fleet

package e2e

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/alicloud-ccm/cloud-provider-alicloud/deploy"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/cluster"
	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/e2e/clouds"
	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/identity"
)

const (
	managerProgram = "cloud-controller-manager"
	emulatedVPC    = "vpc-emulator"
	// look is how often a condition is looked at.
	look = 100 * time.Millisecond
)

// world is a sandbox and, beside it, the cloud controller manager with the published role, both as processes.
type world struct {
	*testing.T
	dir, url string
	client   kubernetes.Interface
	config   *rest.Config

	sandbox *program
	manager *program // nil while none runs
	// as is the manager's identity and settings are its cloud config besides the access key.
	as       identity.Identity
	settings map[string]string
	// ecs stands between the manager and ECS, cloud between the manager and the other products.
	ecs, cloud *clouds.Gateway
}

// worldOptions say how a world differs from others.
type worldOptions struct {
	nodes int
	// cloud is what exists besides the nodes' instances; nil is the emulator's built-in configuration.
	cloud *cloud.Config
	// up are more arguments of "sandbox up".
	up []string
	// settings are more entries of the manager's cloud config.
	settings map[string]string
}

// newWorld starts a sandbox with ready nodes and no manager. What is started ends with the test.
func newWorld(t *testing.T, opts worldOptions) *world {
	t.Helper()
	tmp := t.TempDir()
	w := &world{T: t, dir: filepath.Join(tmp, "sandbox"), settings: opts.settings}
	args := append([]string{"up", "--dir", w.dir, "--nodes", fmt.Sprint(opts.nodes), "--node-ip"}, opts.up...)
	if opts.cloud != nil {
		args = append(args, "--emulator-config", w.writeYAML(filepath.Join(tmp, "emulator.yaml"), opts.cloud))
	}
	w.sandbox = start(t, tmp, args...)
	t.Cleanup(w.stop)
	w.sandbox.untilReady()

	url, err := os.ReadFile(filepath.Join(w.dir, "emulator"))
	if err != nil {
		t.Fatal(err)
	}
	w.url = strings.TrimSpace(string(url))
	w.ecs, w.cloud = clouds.NewGateway(t, w.url), clouds.NewGateway(t, w.url)
	if w.config, err = clientcmd.BuildConfigFromFlags("", filepath.Join(w.dir, "kubeconfig")); err != nil {
		t.Fatal(err)
	}
	w.config.QPS = -1 // the tests look often
	if w.client, err = kubernetes.NewForConfig(w.config); err != nil {
		t.Fatal(err)
	}
	manifest, err := deploy.Files.ReadFile("ccm.yaml")
	if err != nil {
		t.Fatal(err)
	}
	w.as, err = identity.Grant(t.Context(), identity.Options{Client: w.client, Config: w.config, Manifest: manifest, Dir: tmp})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) writeYAML(path string, value any) string {
	w.Helper()
	content, err := yaml.Marshal(value)
	if err == nil {
		err = os.WriteFile(path, content, 0o600)
	}
	if err != nil {
		w.Fatal(err)
	}
	return path
}

// stop ends the sandbox, if it has not ended by itself.
func (w *world) stop() {
	select {
	case <-w.sandbox.done:
	default:
		w.sandbox.stop()
	}
}

// endManager ends what runs of the manager at the end of a test, and shows its log where that helps.
func (w *world) endManager() {
	if w.manager == nil {
		return
	}
	if w.Failed() {
		log := w.manager.stderr.String()
		w.Logf("the manager's last lines:\n%s", lastLines(log))
	}
	if w.alive() == nil {
		w.stopManager()
	}
}

// noElection has the manager work without a lease, which a busy machine may renew too late: that would end the manager.
const noElection = "--leader-elect=false"

// startManager runs the manager and waits until it leads, where it must be elected.
func (w *world) startManager(args ...string) {
	w.Helper()
	// The lease of a manager that was killed would hold the next one up.
	leases := w.client.CoordinationV1().Leases(metav1.NamespaceSystem)
	if err := leases.Delete(w.Context(), managerProgram, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		w.Fatal(err)
	}
	w.manager = w.launchManager(args...)
	w.Cleanup(w.endManager)
	if slices.Contains(args, noElection) {
		return
	}
	w.until("the manager leads", startDeadline, func(ctx context.Context) string {
		lease, err := leases.Get(ctx, managerProgram, metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		if lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" {
			return "nobody holds the lease"
		}
		return ""
	})
}

// launchManager runs a manager and waits for nothing.
func (w *world) launchManager(args ...string) *program {
	w.Helper()
	return launch(w.T, managerProgram, []string{
		"SLB_ENDPOINT=" + w.cloud.Address, "NLB_ENDPOINT=" + w.cloud.Address, "VPC_ENDPOINT=" + w.cloud.Address, "ECS_ENDPOINT=" + w.ecs.Address,
		"ALICLOUD_CLIENT_SCHEME=HTTP",
	}, append([]string{
		"--cloud-provider=alicloud", "--cloud-config=" + w.cloudConfig(), "--kubeconfig=" + w.as.Kubeconfig, "--leader-elect=true",
		"--cluster-cidr=" + cluster.PodCIDR, "--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", testkit.FreePort(w.T)),
		// For 50 nodes at once; the default makes the preparation slow.
		"--kube-api-qps=200", "--kube-api-burst=200",
	}, args...)...)
}

// stopManager ends the manager in order.
func (w *world) stopManager() {
	w.Helper()
	w.manager.stop()
	w.manager = nil
}

// killManager ends the manager as a power cut does.
func (w *world) killManager() {
	w.Helper()
	if err := w.manager.cmd.Process.Signal(syscall.SIGKILL); err != nil {
		w.Fatal(err)
	}
	w.manager.wait(stopDeadline)
	w.manager = nil
}

// cloudConfig writes the official file format, whose parts of the access key are base64.
func (w *world) cloudConfig() string {
	w.Helper()
	encode := base64.StdEncoding.EncodeToString
	global := map[string]string{
		"accessKeyID": encode([]byte(cluster.AccessKeyID)), "accessKeySecret": encode([]byte(cluster.AccessKeySecret)),
		"region": cluster.Region, "vpcid": emulatedVPC, "vswitchid": "cn-hangzhou-a:vsw-a",
	}
	for key, value := range w.settings {
		global[key] = value
	}
	return w.writeYAML(filepath.Join(filepath.Dir(w.dir), "cloud-config.conf"), map[string]any{"Global": global})
}

// until polls until see returns nothing; what it returns instead is what is still missing. It gives up when a program has ended.
func (w *world) until(what string, deadline time.Duration, see func(ctx context.Context) string) {
	w.Helper()
	missing := ""
	err := wait.PollUntilContextTimeout(w.Context(), look, deadline, true, func(ctx context.Context) (bool, error) {
		if err := w.alive(); err != nil {
			return false, err
		}
		seen := see(ctx)
		if ctx.Err() == nil { // what fails because the time is over says nothing
			missing = seen
		}
		return seen == "", nil
	})
	if err != nil {
		w.Fatalf("%s: %s: %v", what, missing, err)
	}
}

// holds watches for a time that see returns nothing; what it returns instead is what went wrong.
func (w *world) holds(what string, over time.Duration, see func(ctx context.Context) string) {
	w.Helper()
	end := time.Now().Add(over)
	w.until(what, over+startDeadline, func(ctx context.Context) string {
		if wrong := see(ctx); wrong != "" {
			w.Fatalf("%s: %s", what, wrong)
		}
		if left := time.Until(end); left > 0 {
			return left.String() + " left"
		}
		return ""
	})
}

func (w *world) alive() error {
	for _, p := range []*program{w.sandbox, w.manager} {
		if p == nil {
			continue
		}
		select {
		case <-p.done:
			return fmt.Errorf("%s has ended", p.name)
		default:
		}
	}
	return nil
}

// admin makes a request to the emulator's admin API and decodes the answer into out, unless that is nil.
func (w *world) admin(method, path string, body, out any) {
	w.Helper()
	text := ""
	if body != nil {
		content, err := json.Marshal(body)
		if err != nil {
			w.Fatal(err)
		}
		text = string(content)
	}
	answer, err := w.request(w.Context(), method, "/_emulator/"+path, text)
	if err == nil && out != nil {
		err = json.Unmarshal([]byte(answer), out)
	}
	if err != nil {
		w.Fatal(err)
	}
}

// get asks the sandbox's URL for something.
func (w *world) get(ctx context.Context, path string) (string, error) {
	return w.request(ctx, http.MethodGet, path, "")
}

func (w *world) request(ctx context.Context, method, path, body string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, method, w.url+path, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	answer, err := io.ReadAll(response.Body)
	if err = errors.Join(err, response.Body.Close()); err != nil {
		return "", err
	}
	if response.StatusCode/100 != 2 {
		return "", fmt.Errorf("%s %s: %s: %s", method, path, response.Status, answer)
	}
	return string(answer), nil
}
