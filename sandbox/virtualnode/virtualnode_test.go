package virtualnode

import (
	"context"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

func TestPodsAreContainerInstances(t *testing.T) {
	t.Parallel()
	client := fake.NewClientset(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default", UID: "1"},
		Spec: corev1.PodSpec{NodeName: "virtual", Containers: []corev1.Container{{
			Name: "web", Ports: []corev1.ContainerPort{{ContainerPort: 80}},
		}}},
	})
	var mu sync.Mutex
	attached := map[string]bool{}
	addresses := make(chan string, 1)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- Run(ctx, Options{
			Name: "virtual", Client: client, Heartbeat: time.Second, Log: io.Discard,
			Attach: func(_ context.Context, id string) (string, Listen, error) {
				mu.Lock()
				defer mu.Unlock()
				attached[id] = true
				return "10.1.0.9", func(ctx context.Context, _ string) (net.Listener, error) {
					l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
					if err == nil {
						addresses <- l.Addr().String()
					}
					return l, err
				}, nil
			},
			Detach: func(id string) error {
				mu.Lock()
				defer mu.Unlock()
				delete(attached, id)
				return nil
			},
		})
	}()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+<-addresses, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(response.Body)
	_ = response.Body.Close() // it has been read
	if err != nil || string(body) != "web\n" {
		t.Errorf("the pod answers %q, %v", body, err)
	}
	for end := time.Now().Add(time.Minute); ; {
		pod, err := client.CoreV1().Pods("default").Get(t.Context(), "web", metav1.GetOptions{})
		if err == nil && pod.Status.PodIP == "10.1.0.9" {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the pod is not reported: %v", err)
		}
		time.Sleep(10 * time.Millisecond)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if len(attached) > 0 {
		t.Errorf("interfaces are left: %v", attached)
	}
}
