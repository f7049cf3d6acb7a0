//go:build linux && real

package real

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

// Deadlines are generous: the machine may be compiling something else.
const (
	startDeadline = 2 * time.Minute
	eventDeadline = 90 * time.Second
	look          = 100 * time.Millisecond
)

// nodeCount is how many ECS machines the cluster has between tests. Besides, there are one on the premises and a virtual node.
const nodeCount = 2

// podCIDR is the range that the guideline's DaemonSet is for.
const podCIDR = "172.17.0.0/16"

// sandbox is the cluster of this package.
var sandbox struct {
	binDir, dir string
	url         string // of the emulator
	client      kubernetes.Interface
}

// The kernel kills the sandbox when the thread that started it ends, and those that have been in a namespace do end: this makes it the
// first thread, which lives as long as the process.
func init() { runtime.LockOSThread() }

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	if os.Geteuid() != 0 {
		fmt.Fprintln(os.Stderr, "real machines need root: run these tests as root, or leave out the build tag real")
		return 1
	}
	host := hostFiles()
	stop, err := start()
	code := 1
	if err == nil {
		code = m.Run()
	}
	if err := errors.Join(err, stop()); err != nil {
		return fail(err)
	}
	left, err := leftBehind(sandbox.dir)
	for _, file := range hostFiles() {
		if !slices.Contains(host, file) {
			left = append(left, "file of the host "+file)
		}
	}
	if err != nil || len(left) > 0 {
		return fail(errors.Join(err, fmt.Errorf("the sandbox has left behind:\n%s", strings.Join(left, "\n"))))
	}
	fmt.Println("the sandbox has left behind no namespace, mount, cgroup, process or file")
	return code
}

func fail(err error) int {
	fmt.Fprintln(os.Stderr, "e2e/real:", err)
	return 1
}

// start runs "sandbox up" and returns when the cluster is ready. The returned function ends it, also after an error.
func start() (stop func() error, err error) {
	stop = func() error { return nil }
	if sandbox.binDir = os.Getenv("SANDBOX_BIN_DIR"); sandbox.binDir == "" {
		return stop, errors.New("SANDBOX_BIN_DIR is not set: it must name the directory with the programs that make build makes")
	}
	parent, err := os.MkdirTemp("", "real-")
	if err != nil {
		return stop, err
	}
	sandbox.dir = filepath.Join(parent, "sandbox")
	config := filepath.Join(parent, "emulator.yaml")
	if err := writeCloud(config); err != nil {
		return stop, err
	}
	cmd := exec.Command(filepath.Join(sandbox.binDir, "sandbox"), "up", "--dir", sandbox.dir, "--node-kind", "real",
		"--nodes", fmt.Sprint(nodeCount), "--on-premises", "1", "--virtual-nodes", "1", "--pod-cidr", podCIDR,
		"--emulator-config", config, "--published", published(), "--open-kruise", filepath.Join(sandbox.binDir, "kruise"))
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return stop, err
	}
	if err := cmd.Start(); err != nil {
		return stop, err
	}
	stop = func() error {
		err := cmd.Process.Signal(syscall.SIGTERM)
		if errors.Is(err, os.ErrProcessDone) {
			err = nil
		}
		// The sandbox removes its directory, and this fails when it has not.
		return errors.Join(err, cmd.Wait(), os.Remove(config), os.Remove(parent))
	}
	if err := awaitReady(stdout); err != nil {
		return stop, err
	}
	url, err := os.ReadFile(filepath.Join(sandbox.dir, "emulator"))
	if err != nil {
		return stop, err
	}
	sandbox.url = strings.TrimSpace(string(url))
	rest, err := clientcmd.BuildConfigFromFlags("", kubeconfig())
	if err != nil {
		return stop, err
	}
	rest.QPS = -1 // the tests look often
	sandbox.client, err = kubernetes.NewForConfig(rest)
	return stop, err
}

// published is the directory with the archives of the images that the project publishes, made of the programs under test.
func published() string { return filepath.Join(sandbox.binDir, "images") }

// thirdVSwitch is in a zone in which no machine is.
const thirdVSwitch = "vsw-c"

// writeCloud writes the built-in cloud with the third vSwitch.
func writeCloud(path string) error {
	config := cloud.DefaultConfig()
	config.VSwitches = append(config.VSwitches,
		cloud.VSwitchConfig{ID: thirdVSwitch, VPCID: config.VPCs[0].ID, Zone: "cn-hangzhou-c", CIDR: "10.3.0.0/16"})
	text, err := yaml.Marshal(config)
	if err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o600)
}

func kubeconfig() string { return filepath.Join(sandbox.dir, "kubeconfig") }

// awaitReady reads the sandbox's output up to its first line.
func awaitReady(from io.Reader) error {
	ctx, cancel := context.WithTimeout(context.Background(), startDeadline)
	defer cancel()
	line := make(chan error, 1)
	go func() {
		first, err := bufio.NewReader(from).ReadString('\n')
		if err == nil && first != "ready\n" {
			err = fmt.Errorf("the sandbox says %q", first)
		}
		line <- err
	}()
	select {
	case err := <-line:
		return err
	case <-ctx.Done():
		return fmt.Errorf("the sandbox is not ready after %s", startDeadline)
	}
}
