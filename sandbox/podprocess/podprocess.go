// Package podprocess runs pods of this project's own programs as processes of the machine that the sandbox is on: with the environment
// and the arguments of the pod's container, a token of its ServiceAccount, its ConfigMaps and Secrets as files, and the metadata service
// of the instance that its node is.
//
// It knows the programs by their command, never reads an image, and isolates nothing.
package podprocess

import (
	"bytes"
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

	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/identity"
	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/lightnode"
)

// programs are the commands that are run, with the name of the built program.
var programs = map[string]string{"/usr/bin/init": "provider-initor"}

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
	// CloudURL answers the OpenAPI of ECS.
	CloudURL string
	// Dir is an existing directory for the files of containers.
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
	env, err := c.environment()
	if err != nil {
		return lightnode.Exit{}, err
	}
	var output bytes.Buffer
	cmd := exec.CommandContext(ctx, filepath.Join(r.opts.BinDir, programs[c.Command[0]]))
	cmd.Args = slices.Concat(c.Command, c.arguments())
	cmd.Stdout, cmd.Stderr = &output, &output
	cmd.Env = slices.Concat(env, []string{
		"KUBECONFIG=" + kubeconfig, "METADATA_ENDPOINT=" + r.opts.Metadata(instanceID),
		"ECS_ENDPOINT=" + r.opts.CloudURL, "ALICLOUD_CLIENT_SCHEME=HTTP",
	})
	if err = cmd.Run(); err != nil && cmd.ProcessState == nil {
		return lightnode.Exit{}, fmt.Errorf("run %s: %w", c.Command[0], err)
	}
	code := cmd.ProcessState.ExitCode()
	message, err := c.terminationMessage(code, output.Bytes())
	return lightnode.Exit{Code: int32(code), Message: message}, err
}

// kubeconfig writes a kubeconfig with a token of the pod's ServiceAccount, which is bound to the pod, as that of a kubelet is.
func (r *Runner) kubeconfig(ctx context.Context, pod *corev1.Pod, dir string) (string, error) {
	token, err := r.opts.Client.CoreV1().ServiceAccounts(pod.Namespace).CreateToken(ctx, pod.Spec.ServiceAccountName,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
			BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID},
		}}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("request a token for ServiceAccount %s/%s: %w", pod.Namespace, pod.Spec.ServiceAccountName, err)
	}
	path := filepath.Join(dir, "kubeconfig")
	return path, identity.WriteKubeconfig(path, r.opts.Config, token.Status.Token)
}
