// Package podprocess runs pods of this project's own programs as processes of the machine that the sandbox is on: with the environment
// and the arguments of the pod's container, a token of its ServiceAccount, its ConfigMaps and Secrets as files, and the metadata service
// of the instance that its node is.
//
// It knows the programs by their command, never reads an image, and isolates nothing.
package podprocess

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/child"
	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/freeport"
	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/identity"
	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/lightnode"
)

// manager is the command of the manager, whose identity and port are flags.
const manager = "/cloud-controller-manager"

// programs are the commands that are run, with the name of the built program.
var programs = map[string]string{"/usr/bin/init": "provider-initor", manager: "cloud-controller-manager"}

// tokenSeconds is how long tokens are valid: nothing renews them here.
const tokenSeconds = int64(7 * 24 * 60 * 60)

// messageLimit is how much of a log a kubelet takes for the termination message.
const messageLimit = 2048

// Options configures a Runner. All are required.
type Options struct {
	// BinDir holds the built programs.
	BinDir string
	// Client is the administrator's, Config says where the API server is.
	Client kubernetes.Interface
	Config *rest.Config
	// Metadata is the URL of an instance's metadata service.
	Metadata func(instanceID string) string
	// CloudURL answers the OpenAPI of all products.
	CloudURL string
	// Dir is an existing directory for the files of containers. Their output is in its directory pods.
	Dir string
}

// Runner is a [lightnode.Runner] of processes.
type Runner struct {
	opts Options
}

var _ lightnode.Runner = (*Runner)(nil)

// New returns a runner. The programs must exist.
func New(opts Options) (*Runner, error) {
	for _, program := range programs {
		if _, err := os.Stat(filepath.Join(opts.BinDir, program)); err != nil {
			return nil, fmt.Errorf("programs that pods run (make build makes them): %w", err)
		}
	}
	return &Runner{opts: opts}, nil
}

// Runs implements [lightnode.Runner].
func (r *Runner) Runs(pod *corev1.Pod) bool {
	containers := pod.Spec.Containers
	return len(containers) == 1 && len(containers[0].Command) > 0 && programs[containers[0].Command[0]] != ""
}

// Run implements [lightnode.Runner].
func (r *Runner) Run(ctx context.Context, pod *corev1.Pod, instanceID string) (_ lightnode.Exit, err error) {
	dir, err := os.MkdirTemp(r.opts.Dir, "container-")
	if err != nil {
		return lightnode.Exit{}, fmt.Errorf("make a directory for a container: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	c := &container{Container: pod.Spec.Containers[0], pod: pod, dir: dir}
	if err = r.mount(ctx, c); err != nil {
		return lightnode.Exit{}, err
	}
	kubeconfig, err := r.kubeconfig(ctx, pod, dir)
	if err != nil {
		return lightnode.Exit{}, err
	}
	env, err := r.environment(ctx, c)
	if err != nil {
		return lightnode.Exit{}, err
	}
	args, err := r.arguments(ctx, c, kubeconfig)
	if err != nil {
		return lightnode.Exit{}, err
	}
	output, err := r.log(pod)
	if err != nil {
		return lightnode.Exit{}, err
	}
	defer func() { err = errors.Join(err, output.Close()) }()
	cmd := exec.Command(filepath.Join(r.opts.BinDir, programs[c.Command[0]]), args...) //nolint:noctx // Stop ends it in order: a manager releases its Lease
	cmd.Stdout, cmd.Stderr = output, output
	cmd.Env = append(env, "KUBECONFIG="+kubeconfig, "METADATA_ENDPOINT="+r.opts.Metadata(instanceID), "ALICLOUD_CLIENT_SCHEME=HTTP")
	for _, product := range []string{"ECS", "SLB", "NLB", "VPC", "STS", "QUOTAS"} {
		cmd.Env = append(cmd.Env, product+"_ENDPOINT="+r.opts.CloudURL)
	}
	process, err := child.StartCommand(cmd)
	if err != nil {
		return lightnode.Exit{}, fmt.Errorf("run %s: %w", c.Command[0], err)
	}
	select {
	case <-process.Done():
	case <-ctx.Done():
		process.Stop()
	}
	code := process.ExitCode()
	message, err := c.terminationMessage(code, output)
	return lightnode.Exit{Code: int32(code), Message: message}, err
}

// log opens the file with the output of a pod's containers, one behind the other.
func (r *Runner) log(pod *corev1.Pod) (*os.File, error) {
	dir := filepath.Join(r.opts.Dir, "pods")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make a directory for the logs of pods: %w", err)
	}
	file, err := os.OpenFile(filepath.Join(dir, pod.Namespace+"_"+pod.Name+".log"), os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the log of a pod: %w", err)
	}
	return file, nil
}

// arguments are the container's. The manager gets a port of its own, because all machines are this one.
func (r *Runner) arguments(ctx context.Context, c *container, kubeconfig string) ([]string, error) {
	var args []string
	for _, arg := range slices.Concat(c.Command[1:], c.Args) {
		args = append(args, c.outside(arg))
	}
	if c.Command[0] != manager {
		return args, nil
	}
	port, err := freeport.FindOne(ctx)
	if err != nil {
		return nil, err
	}
	return append(args, "--kubeconfig="+kubeconfig, "--authentication-kubeconfig="+kubeconfig, "--authorization-kubeconfig="+kubeconfig,
		"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", port)), nil
}

// kubeconfig writes a kubeconfig with a token of the pod's ServiceAccount.
func (r *Runner) kubeconfig(ctx context.Context, pod *corev1.Pod, dir string) (string, error) {
	token, err := r.token(ctx, pod)
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "kubeconfig")
	return path, identity.WriteKubeconfig(path, r.opts.Config, token)
}

// token is one of the pod's ServiceAccount, which is bound to the pod, as that of a kubelet is. It outlives every run of a sandbox.
func (r *Runner) token(ctx context.Context, pod *corev1.Pod, audiences ...string) (string, error) {
	token, err := r.opts.Client.CoreV1().ServiceAccounts(pod.Namespace).CreateToken(ctx, pod.Spec.ServiceAccountName,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
			Audiences: audiences, ExpirationSeconds: ptr.To(tokenSeconds),
			BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID},
		}}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("request a token for ServiceAccount %s/%s: %w", pod.Namespace, pod.Spec.ServiceAccountName, err)
	}
	return token.Status.Token, nil
}
