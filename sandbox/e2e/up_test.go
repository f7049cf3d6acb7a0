//go:build unix

package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
)

func TestUp(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "sandbox")
	p := start(t, t.TempDir(), "up", "--nodes", "2", "--dir", dir)
	p.untilReady()
	client := clientOf(t, dir)
	if got := ready(t.Context(), client); len(got) != 2 {
		t.Errorf("nodes and their readiness are %v, want 2 ready ones", got)
	}
	if got, err := client.Discovery().ServerVersion(); err != nil || !strings.HasPrefix(got.GitVersion, releaseUnderTest()) {
		t.Errorf("the API server has the version %v, want %s: %v", got, releaseUnderTest(), err)
	}
	second := start(t, t.TempDir(), "up", "--dir", dir)
	if code := second.wait(stopDeadline); code != 1 || strings.Count(second.stderr.String(), "\n") != 1 {
		t.Errorf("a second sandbox in the same directory gives exit code %d and %q, want 1 and one line", code, second.stderr.String())
	}

	admin(t, dir, http.MethodPut, "instances/i-late", `{"InstanceName":"late"}`)
	p.until("the new instance joins", eventDeadline, func(ctx context.Context) bool { return ready(ctx, client)["late"] })
	admin(t, dir, http.MethodPut, "instances/i-nameless", `{}`)
	p.until("the nameless instance joins by its ID", eventDeadline, func(ctx context.Context) bool { return ready(ctx, client)["i-nameless"] })
	admin(t, dir, http.MethodDelete, "instances/i-late", "")
	p.until("the released machine's node is not ready", eventDeadline, func(ctx context.Context) bool { return !ready(ctx, client)["late"] })
	if _, err := client.CoreV1().Nodes().Get(t.Context(), "late", metav1.GetOptions{}); err != nil {
		t.Errorf("the Node of a released machine: %v, want it left to the cloud controller manager", err)
	}

	p.stop()
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory that the sandbox made is still there: %v", err)
	}
}

// releaseUnderTest is what the version of the control plane begins with.
func releaseUnderTest() string {
	if directory := os.Getenv("SANDBOX_KUBERNETES"); directory != "" {
		return filepath.Base(directory) + "."
	}
	return "v1."
}

// TestCloudConfigStartsTheManager: the manager starts with the command that the sandbox prints, with the cloud-config as it is, and
// initializes the nodes. The console is where the sandbox says.
func TestCloudConfigStartsTheManager(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "sandbox")
	p := start(t, t.TempDir(), "up", "--nodes", "2", "--node-ip", "--dir", dir)
	p.untilReady()
	p.until("the next steps are printed", startDeadline, func(context.Context) bool {
		return strings.Contains(p.stdout.String(), "create service")
	})
	printed := p.stdout.String()
	if !strings.Contains(printed, "\n  export KUBECONFIG="+filepath.Join(dir, "kubeconfig")+"\n") {
		t.Errorf("no command for the kubeconfig in\n%s", printed)
	}
	if title := pageAt(t, regexp.MustCompile(`console: (\S+)`).FindStringSubmatch(printed)); !strings.Contains(title,
		"<title>Alibaba Cloud emulator</title>") {
		t.Errorf("the console is %q", title)
	}
	command := regexp.MustCompile(`\n  (\S+=\S+) cloud-controller-manager (.*)\n`).FindStringSubmatch(printed)
	if command == nil {
		t.Fatalf("no command that starts the manager in\n%s", printed)
	}
	// The port is for tests that run at the same time.
	manager := launch(t, "cloud-controller-manager", []string{command[1]},
		append(strings.Fields(command[2]), "--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", testkit.FreePort(t)))...)
	client := clientOf(t, dir)
	manager.until("the nodes are initialized", eventDeadline, func(ctx context.Context) bool {
		nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		return err == nil && len(nodes.Items) == 2 && !slices.ContainsFunc(nodes.Items, func(n corev1.Node) bool {
			return len(n.Spec.Taints) > 0
		})
	})
	manager.stop()
	p.stop()
}

// pageAt reads the page at the address that an expression has found.
func pageAt(t *testing.T, found []string) string {
	t.Helper()
	if found == nil {
		return ""
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, found[1], nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestUpLeavesForeignFilesAndRecoversFromAKill(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	dir := t.TempDir()
	foreign := filepath.Join(dir, "notes.txt")
	if err := os.WriteFile(foreign, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	killed := start(t, t.TempDir(), "up", "--nodes", "1", "--dir", dir)
	killed.untilReady()
	if err := killed.cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	killed.wait(stopDeadline)

	p := start(t, t.TempDir(), "up", "--nodes", "0", "--dir", dir)
	p.untilReady()
	if got := ready(t.Context(), clientOf(t, dir)); len(got) != 0 {
		t.Errorf("nodes are %v: something of the killed sandbox came back", got)
	}
	p.stop()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 1 || entries[0].Name() != "notes.txt" {
		t.Errorf("the directory holds %v, want only notes.txt", entries)
	}
}

func TestUpInterruptedWhileStarting(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "sandbox")
	p := start(t, t.TempDir(), "up", "--dir", dir)
	// The API server's files are there a moment before it runs its start-up hooks.
	p.until("the control plane is starting", startDeadline, func(context.Context) bool {
		_, err := os.Stat(filepath.Join(dir, ".state", "etcd.sock"))
		return err == nil
	})
	p.stop()
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory that the sandbox made is still there: %v", err)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		args []string
		want string // what the one line names
	}{
		{"no directory", []string{"up"}, "--dir"},
		{"negative nodes", []string{"up", "--dir", "d", "--nodes", "-1"}, "--nodes"},
		{"unknown kind", []string{"up", "--dir", "d", "--node-kind", "heavy"}, "heavy"},
		{"unknown flag", []string{"up", "--dirs", "d"}, "--dirs"},
		{"unknown command", []string{"down"}, "down"},
		{"unknown output", []string{"bench", "--output", "xml"}, "xml"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := start(t, t.TempDir(), tt.args...)
			code, message := p.wait(stopDeadline), p.stderr.String()
			if code != 1 || strings.Count(message, "\n") != 1 || !strings.Contains(message, tt.want) {
				t.Errorf("exit code %d with %q, want 1 with one line that names %s", code, message, tt.want)
			}
		})
	}
}

func TestKubectl(t *testing.T) {
	t.Parallel()
	p := start(t, t.TempDir(), "kubectl", "version", "--client")
	if code := p.wait(stopDeadline); code != 0 || !strings.Contains(p.stdout.String(), "Client Version: v1.") {
		t.Errorf("exit code %d with %q and %q", code, p.stdout.String(), p.stderr.String())
	}
}

func clientOf(t *testing.T, dir string) kubernetes.Interface {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(dir, "kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// ready says of each node whether it is ready. A failed read shows no nodes; whoever waits reads again.
func ready(ctx context.Context, client kubernetes.Interface) map[string]bool {
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil
	}
	result := map[string]bool{}
	for _, node := range nodes.Items {
		for _, condition := range node.Status.Conditions {
			if condition.Type == corev1.NodeReady {
				result[node.Name] = condition.Status == corev1.ConditionTrue
			}
		}
	}
	return result
}

// admin makes a request to the emulator that the sandbox's directory names.
func admin(t *testing.T, dir, method, path, body string) {
	t.Helper()
	url, err := os.ReadFile(filepath.Join(dir, "emulator"))
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), method, strings.TrimSpace(string(url))+"/_emulator/"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode/100 != 2 {
		t.Fatalf("%s %s: %s", method, path, response.Status)
	}
}
