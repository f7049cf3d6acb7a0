package account

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Sandbox is a cluster with light nodes beside an emulator.
type Sandbox struct {
	// URL is that of the emulator.
	URL string
	// From is the instance from which requests come that come from outside: light nodes have no other place.
	From string
	*StandIn
}

// joining is the instance behind the Node that joins.
const joining = "i-joining"

// Outside implements Cluster.
func (s *Sandbox) Outside(ctx context.Context, target string) (string, error) {
	return s.get(ctx, s.From, target)
}

// InPod implements Cluster: a light pod has the network of its node.
func (s *Sandbox) InPod(ctx context.Context, pod *corev1.Pod, target string) (string, error) {
	instances, err := s.Client.CoreV1().Nodes().Get(ctx, pod.Spec.NodeName, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("find the node of a pod: %w", err)
	}
	return s.get(ctx, instanceOf(instances), target)
}

func (s *Sandbox) get(ctx context.Context, from, target string) (string, error) {
	u, err := url.Parse(target)
	if err != nil {
		return "", fmt.Errorf("ask %s: %w", target, err)
	}
	query := url.Values{"from": {from}, "to": {u.Host}}
	return Get(ctx, http.DefaultClient, s.URL+"/_sandbox/get?"+query.Encode())
}

// Join implements Cluster.
func (s *Sandbox) Join(ctx context.Context, node string) error {
	return s.admin(ctx, http.MethodPut, fmt.Sprintf(`{"InstanceName":%q}`, node))
}

// Release implements Cluster.
func (s *Sandbox) Release(ctx context.Context, _ string) error {
	return s.admin(ctx, http.MethodDelete, "")
}

// admin makes or releases the instance. One that is not there is released.
func (s *Sandbox) admin(ctx context.Context, method, body string) error {
	request, err := http.NewRequestWithContext(ctx, method, s.URL+"/_emulator/instances/"+joining, strings.NewReader(body))
	if err != nil {
		return fmt.Errorf("ask the emulator: %w", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err //nolint:wrapcheck // it names method and URL
	}
	answer, err := io.ReadAll(response.Body)
	err = errors.Join(err, response.Body.Close())
	gone := method == http.MethodDelete && response.StatusCode == http.StatusNotFound
	if err == nil && response.StatusCode/100 != 2 && !gone {
		err = fmt.Errorf("%s %s: %s: %s", method, request.URL, response.Status, answer)
	}
	return err
}

// Official implements Cluster.
func (s *Sandbox) Official(ctx context.Context, run bool) error { return s.Run(ctx, run) }
