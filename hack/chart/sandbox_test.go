package chart

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Deadlines are generous: the machine may be compiling something else.
const (
	deadline = 120 * time.Second
	look     = 100 * time.Millisecond
)

// podCIDR is the pod network of sandboxes.
const podCIDR = "10.244.0.0/16"

// sandbox is a real control plane beside an emulated cloud, and a directory of programs for the PATH.
type sandbox struct {
	*testing.T
	dir, url, path string
	// checkout stands for the project's root; what commands write there is nobody's.
	checkout string
	client   kubernetes.Interface
	config   *rest.Config
	// vendor are the objects of the official CCM before it is replaced.
	vendor string
}

// process is a program that runs beside the test.
type process struct {
	command *exec.Cmd
	output  buffer
	done    chan struct{}
}

// buffer may be read while a process writes to it.
type buffer struct {
	mu   sync.Mutex
	data bytes.Buffer // guarded by mu
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.data.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.data.String()
}

// start runs a program until the test ends or it is stopped.
func start(t *testing.T, env []string, name string, args ...string) *process {
	t.Helper()
	p := &process{command: exec.Command(name, args...), done: make(chan struct{})}
	p.command.Env = append(os.Environ(), env...)
	p.command.Stdout, p.command.Stderr = &p.output, &p.output
	p.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.command.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.done)
		_ = p.command.Wait() // its output tells
	}()
	t.Cleanup(func() { p.stop(t) })
	return p
}

// stop ends the process in order, and by force when that takes too long.
func (p *process) stop(t *testing.T) {
	t.Helper()
	_ = p.command.Process.Signal(syscall.SIGTERM) // it may have ended
	select {
	case <-p.done:
	case <-time.After(deadline):
		_ = syscall.Kill(-p.command.Process.Pid, syscall.SIGKILL)
		<-p.done
		t.Errorf("%s did not end in order", p.command.Path)
	}
	if t.Failed() {
		text := p.output.String()
		t.Logf("%s, last lines:\n%s", filepath.Base(p.command.Path), text[max(0, len(text)-4096):])
	}
}

// newSandbox starts a sandbox with three nodes; more arguments are those of "sandbox up". The PATH gets the given helm, kubectl and the
// project's programs.
func newSandbox(t *testing.T, helm string, up ...string) *sandbox {
	t.Helper()
	tmp := t.TempDir()
	s := &sandbox{T: t, dir: filepath.Join(tmp, "sandbox"), path: filepath.Join(tmp, "bin")}
	if err := os.Mkdir(s.path, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{
		"helm": tool(t, helm), "kubectl": program(t, "kubectl"), "provider-initor": program(t, "provider-initor"),
		"cloud-controller-manager": program(t, "cloud-controller-manager"),
	} {
		if err := os.Symlink(target, filepath.Join(s.path, name)); err != nil {
			t.Fatal(err)
		}
	}
	s.checkOut(filepath.Join(tmp, "checkout"))
	p := start(t, []string{"TMPDIR=" + tmp}, program(t, "sandbox"),
		append([]string{"up", "--nodes", "3", "--node-ip", "--dir", s.dir}, up...)...)
	s.until("the sandbox is ready", func(context.Context) string {
		select {
		case <-p.done:
			t.Fatalf("the sandbox has ended: %s", p.output.String())
		default:
		}
		if !strings.Contains(p.output.String(), "\nready\n") {
			return "it says: " + p.output.String()
		}
		return ""
	})
	url, err := os.ReadFile(filepath.Join(s.dir, "emulator"))
	if err != nil {
		t.Fatal(err)
	}
	s.url = strings.TrimSpace(string(url))
	if s.config, err = clientcmd.BuildConfigFromFlags("", filepath.Join(s.dir, "kubeconfig")); err != nil {
		t.Fatal(err)
	}
	s.config.QPS = -1 // the tests look often
	if s.client, err = kubernetes.NewForConfig(s.config); err != nil {
		t.Fatal(err)
	}
	return s
}

// environment is that of a user's shell for this cluster.
func (s *sandbox) environment() []string {
	return []string{"PATH=" + s.path + ":" + os.Getenv("PATH"), "KUBECONFIG=" + filepath.Join(s.dir, "kubeconfig"),
		"HOME=" + filepath.Dir(s.dir)}
}

// checkOut makes a directory that shows what users have of the project.
func (s *sandbox) checkOut(dir string) {
	s.Helper()
	s.checkout = dir
	if err := os.Mkdir(dir, 0o755); err != nil { //nolint:gosec // as a checkout is
		s.Fatal(err)
	}
	for _, name := range []string{"charts", "deploy", "hack"} {
		target, err := filepath.Abs(filepath.Join(root, name))
		if err == nil {
			err = os.Symlink(target, filepath.Join(dir, name))
		}
		if err != nil {
			s.Fatal(err)
		}
	}
}

// shell runs a line of bash in a checkout, as a user does who follows the documentation.
func (s *sandbox) shell(line string, env ...string) result {
	s.Helper()
	return run(s.Context(), s.T, append(s.environment(), env...), "bash", "-euo", "pipefail", "-c", "cd "+s.checkout+"\n"+line)
}

// must runs a line of bash that has to succeed, and returns what it prints.
func (s *sandbox) must(line string, env ...string) string {
	s.Helper()
	got := s.shell(line, env...)
	if got.code != 0 {
		s.Fatalf("%s\nexit code %d: %s%s", line, got.code, got.stdout, got.stderr)
	}
	return got.stdout
}

// until polls until see returns nothing; what it returns instead is what is still missing.
func (s *sandbox) until(what string, see func(ctx context.Context) string) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), deadline)
	defer cancel()
	tick := time.NewTicker(look)
	defer tick.Stop()
	for {
		missing := see(ctx)
		if missing == "" {
			return
		}
		select {
		case <-ctx.Done():
			s.Fatalf("%s: %s", what, missing)
		case <-tick.C:
		}
	}
}

// ask makes a request to the emulated cloud's administration and decodes the answer into out, where that is not nil.
func (s *sandbox) ask(method, path string, out any) {
	s.Helper()
	request, err := http.NewRequestWithContext(context.WithoutCancel(s.Context()), method, s.url+"/_emulator/"+path, nil)
	if err != nil {
		s.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		s.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode/100 != 2 {
		err = fmt.Errorf("%s: %s", response.Status, text)
	}
	if err == nil && out != nil {
		err = json.Unmarshal(text, out)
	}
	if err != nil {
		s.Fatalf("%s %s: %v", method, path, err)
	}
}

// state decodes the emulated cloud's state into out.
func (s *sandbox) state(out any) {
	s.Helper()
	s.ask(http.MethodGet, "state", out)
}

// loadBalancers are those of the emulated cloud, by id.
func (s *sandbox) loadBalancers() map[string]string {
	s.Helper()
	var state struct {
		LoadBalancers []struct{ LoadBalancerId, Address string } //nolint:revive,staticcheck // the API's spelling
	}
	s.state(&state)
	found := map[string]string{}
	for _, lb := range state.LoadBalancers {
		found[lb.LoadBalancerId] = lb.Address
	}
	return found
}
