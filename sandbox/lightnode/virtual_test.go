package lightnode

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
)

// pipes is a listener without a network, so that it works in a synctest bubble.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (p pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p pipes) Close() error { close(p.closed); return nil }

func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

// dial connects to the listener.
func (p pipes) dial(context.Context, string, string) (net.Conn, error) {
	client, server := net.Pipe()
	p.conns <- server
	return client, nil
}

func TestPodsAreContainerInstances(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default", UID: "1"},
			Spec: corev1.PodSpec{NodeName: "virtual", Containers: []corev1.Container{{
				Name: "web", Ports: []corev1.ContainerPort{{ContainerPort: 80}},
			}}},
		})
		listener := pipes{make(chan net.Conn), make(chan struct{})}
		attached := map[string]bool{}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			ended <- RunVirtual(ctx, VirtualNode{
				Name: "virtual", Client: client, Heartbeat: time.Second,
				Attach: func(_ context.Context, id string) (netip.Addr, Listen, error) {
					attached[id] = true
					return netip.MustParseAddr("10.1.0.9"), func(context.Context, string) (net.Listener, error) { return listener, nil }, nil
				},
				Detach: func(id string) error {
					delete(attached, id)
					return nil
				},
			})
		}()
		synctest.Wait()
		web := http.Client{Transport: &http.Transport{DialContext: listener.dial, DisableKeepAlives: true}}
		response := testkit.Must(web.Do(testkit.Must(http.NewRequestWithContext(t.Context(), http.MethodGet, "http://10.1.0.9", nil))(t)))(t)
		body, err := io.ReadAll(response.Body)
		_ = response.Body.Close() // it has been read
		if err != nil || string(body) != "web\n" {
			t.Errorf("the pod answers %q, %v", body, err)
		}
		pod := testkit.Must(client.CoreV1().Pods("default").Get(t.Context(), "web", metav1.GetOptions{}))(t)
		if pod.Status.PodIP != "10.1.0.9" {
			t.Errorf("the pod's status has the address %q", pod.Status.PodIP)
		}
		stop()
		testkit.Check(t, <-ended)
		if len(attached) > 0 {
			t.Errorf("interfaces are left: %v", attached)
		}
	})
}
