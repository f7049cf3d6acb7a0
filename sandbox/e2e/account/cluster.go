package account

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Cluster is what the stories cannot do through the API server and the cloud alone.
type Cluster interface {
	// Outside asks a URL from outside of the cluster and returns the body.
	Outside(ctx context.Context, url string) (string, error)
	// InPod asks a URL from a pod and returns the body.
	InPod(ctx context.Context, pod *corev1.Pod, url string) (string, error)
	// Join makes an instance that becomes the Node of this name. Release releases it, also where it never became a Node or is gone.
	Join(ctx context.Context, node string) error
	Release(ctx context.Context, node string) error
	// Official lets the official CCM run in the cluster, or ends it. Both may be asked for twice.
	Official(ctx context.Context, run bool) error
}

// patience is how long one request may take.
const patience = 5 * time.Second

// Users is a cluster of a user. Empty commands and files mean that there is no way, see [Users.Skips].
type Users struct {
	// Kubectl is the program to run in pods with and to apply Official, as a command and its first arguments.
	Kubectl []string
	// JoinCommand and ReleaseCommand are for the shell. They find the name of the Node in the variable NODE_NAME.
	JoinCommand, ReleaseCommand string
	// OfficialManifest is the file with the manifest of the official CCM.
	OfficialManifest string
}

// Skips are the stories for which the user gives no way, with the reasons.
func (u *Users) Skips() map[string]string {
	skips := map[string]string{}
	if u.JoinCommand == "" || u.ReleaseCommand == "" {
		skips["node"] = "E2E_JOIN and E2E_RELEASE are not set: commands that make an instance join as the Node $NODE_NAME, and release it"
	}
	if u.OfficialManifest == "" {
		skips["adoption"] = "E2E_OFFICIAL is not set: a file with the manifest of the official CCM"
	}
	return skips
}

// Outside implements Cluster: the user's workstation is outside.
func (u *Users) Outside(ctx context.Context, url string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	// Each request has a connection of its own, so that the load balancer chooses anew.
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	return Get(ctx, &client, url)
}

// Get makes a request and returns the body without the space around it.
func Get(ctx context.Context, client *http.Client, url string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", fmt.Errorf("ask %s: %w", url, err)
	}
	response, err := client.Do(request)
	if err != nil {
		return "", err //nolint:wrapcheck // it names method and URL
	}
	body, err := io.ReadAll(response.Body)
	if err = errors.Join(err, response.Body.Close()); err != nil {
		return "", fmt.Errorf("read the answer of %s: %w", url, err)
	}
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s: %s: %s", url, response.Status, body)
	}
	return strings.TrimSpace(string(body)), nil
}

// InPod implements Cluster with the program wget of the pod's image.
func (u *Users) InPod(ctx context.Context, pod *corev1.Pod, url string) (string, error) {
	args := []string{"exec", "--namespace", pod.Namespace, pod.Name, "--", "wget", "-q", "-O", "-", "-T", "3", url}
	out, err := u.kubectl(ctx, args...).Output()
	if err != nil {
		return "", fmt.Errorf("ask %s in pod %s: %w", url, pod.Name, described(err))
	}
	return strings.TrimSpace(string(out)), nil
}

// described adds what a program has written to standard error.
func described(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) && len(exit.Stderr) > 0 {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(string(exit.Stderr)))
	}
	return err
}

func (u *Users) kubectl(ctx context.Context, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, u.Kubectl[0], append(u.Kubectl[1:len(u.Kubectl):len(u.Kubectl)], args...)...)
}

// Join implements Cluster.
func (u *Users) Join(ctx context.Context, node string) error {
	return u.shell(ctx, u.JoinCommand, node)
}

// Release implements Cluster.
func (u *Users) Release(ctx context.Context, node string) error {
	return u.shell(ctx, u.ReleaseCommand, node)
}

func (*Users) shell(ctx context.Context, command, node string) error {
	cmd := exec.CommandContext(ctx, "sh", "-c", command)
	cmd.Env = append(os.Environ(), "NODE_NAME="+node)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", command, err, strings.TrimSpace(string(out)))
	}
	return nil
}

// Official implements Cluster.
func (u *Users) Official(ctx context.Context, run bool) error {
	if u.OfficialManifest == "" {
		return nil
	}
	args := []string{"delete", "--ignore-not-found", "--wait", "-f", u.OfficialManifest}
	if run {
		args = []string{"apply", "-f", u.OfficialManifest}
	}
	if _, err := u.kubectl(ctx, args...).Output(); err != nil {
		return fmt.Errorf("kubectl %s: %w", strings.Join(args, " "), described(err))
	}
	return nil
}
