package rollout

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
)

func TestRun(t *testing.T) {
	t.Parallel()
	for _, driver := range []Driver{DriverBroadcastJob, DriverJob} {
		t.Run(string(driver), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(endByName, node("a-set", ""), node("b-conflict", "k3s://b"), node("c-skipped", ""), virtualNode("d"))
				c.installOpenKruise()
				var seen [][]NodeState
				r := c.rollout(t, Config{Driver: driver}, func(states []NodeState) { seen = append(seen, states) })
				got, err := r.Run(t.Context())
				want := []NodeState{
					{Node: "a-set", ProviderID: "cn-hangzhou.i-1", Result: ResultSet},
					{Node: "b-conflict", ProviderID: "k3s://b", Result: ResultFailed, Reason: "the ID is another one"},
					{Node: "c-skipped", Result: ResultSkipped, Reason: "not an ECS instance"},
				}
				if diff := cmp.Diff(want, got); err != nil || diff != "" {
					t.Errorf("error %v, states (-want +got):\n%s", err, diff)
				}
				if len(seen) == 0 || !cmp.Equal(seen[len(seen)-1], want) {
					t.Errorf("progress ends with %v", seen)
				}
				if left := c.left(t); len(left) > 0 {
					t.Errorf("left in the cluster: %q", left)
				}
			})
		})
	}
}

func TestRunMakesTheIdentityFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(endByName, node("a-set", ""))
		c.installOpenKruise()
		if _, err := c.rollout(t, Config{Driver: DriverBroadcastJob}, nil).Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		want := []string{
			"delete-collection jobs ", "delete-collection broadcastjobs ", // of an earlier run
			"patch serviceaccounts test", "patch clusterroles test", "patch clusterrolebindings test", "patch broadcastjobs test",
			"delete-collection jobs ", "delete-collection broadcastjobs ",
			"delete clusterrolebindings test", "delete clusterroles test", "delete serviceaccounts test",
		}
		if diff := cmp.Diff(want, c.writes()); diff != "" {
			t.Errorf("writes (-want +got):\n%s", diff)
		}
	})
}

func TestRunKeeps(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(endByName, node("a-set", ""))
		c.installOpenKruise()
		r := c.rollout(t, Config{Driver: DriverBroadcastJob, Keep: true}, nil)
		if _, err := r.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"account", "binding", "broadcastjob", "role"}, c.left(t)); diff != "" {
			t.Errorf("left in the cluster (-want +got):\n%s", diff)
		}
		got, found, err := r.Status(t.Context())
		want := []NodeState{{Node: "a-set", ProviderID: "cn-hangzhou.i-1", Result: ResultSet}}
		if diff := cmp.Diff(want, got); !found || err != nil || diff != "" {
			t.Errorf("Status: found %t, error %v, states (-want +got):\n%s", found, err, diff)
		}
	})
}

func TestRunFollowsAPodToItsEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodRunning }, node("a-set", ""))
		finish := func(states []NodeState) {
			if states[0].Result != ResultPending {
				return
			}
			pods, err := c.kube.CoreV1().Pods("kube-system").List(t.Context(), metav1.ListOptions{})
			if err != nil || len(pods.Items) != 1 {
				t.Fatalf("pods are %v, error %v", pods, err)
			}
			endByName(&pods.Items[0])
			if _, err := c.kube.CoreV1().Pods("kube-system").UpdateStatus(t.Context(), &pods.Items[0], metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		start := time.Now()
		got, err := c.rollout(t, Config{Driver: DriverJob}, finish).Run(t.Context())
		if err != nil || got[0].Result != ResultSet || time.Since(start) > 2*time.Second {
			t.Errorf("after %s: %v, %v", time.Since(start), got, err)
		}
	})
}

// TestEvictedPodFailsItsNode: OpenKruise makes no other pod for a node whose pod was evicted; another run does.
func TestEvictedPodFailsItsNode(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(evicted, node("a-set", ""))
		c.installOpenKruise()
		got, err := c.rollout(t, Config{Driver: DriverBroadcastJob}, nil).Run(t.Context())
		want := []NodeState{{Node: "a-set", Result: ResultFailed, Reason: "Evicted: disk is full"}}
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("error %v, states (-want +got):\n%s", err, diff)
		}
		if left := c.left(t); len(left) > 0 {
			t.Errorf("left in the cluster: %q", left)
		}
	})
}

func TestRunEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(nil, node("a", ""))
		c.noPods = true
		start := time.Now()
		got, err := c.rollout(t, Config{Driver: DriverJob, Timeout: time.Minute}, nil).Run(t.Context())
		want := []NodeState{{Node: "a", Result: ResultPending, Reason: "there is no pod yet"}}
		if took := time.Since(start); err != nil || !cmp.Equal(got, want) || took != time.Minute {
			t.Errorf("after %s: %v, %v, want %v after a minute", took, got, err, want)
		}
		if left := c.left(t); len(left) > 0 {
			t.Errorf("left in the cluster: %q", left)
		}
	})
}

func TestRunInterruptedLeavesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, interrupt := context.WithCancel(t.Context())
		c := newCluster(nil, node("a", ""))
		c.noPods = true
		_, err := c.rollout(t, Config{Driver: DriverJob}, func([]NodeState) { interrupt() }).Run(ctx)
		if !errors.Is(err, context.Canceled) {
			t.Errorf("error %v, want that of the context", err)
		}
		if left := c.left(t); len(left) > 0 {
			t.Errorf("left in the cluster: %q", left)
		}
	})
}

func TestRunRefusedHalfWayLeavesNothing(t *testing.T) {
	t.Parallel()
	c := newCluster(endByName, node("a-set", ""))
	c.kube.PrependReactor("patch", "jobs", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(corev1.Resource("jobs"), "a", errors.New("no role"))
	})
	if _, err := c.rollout(t, Config{Driver: DriverJob}, nil).Run(t.Context()); !apierrors.IsForbidden(err) {
		t.Errorf("error %v, want the API server's", err)
	}
	if left := c.left(t); len(left) > 0 {
		t.Errorf("left in the cluster: %q", left)
	}
}

func TestRunWithoutOpenKruise(t *testing.T) {
	t.Parallel()
	c := newCluster(endByName, node("a-set", ""))
	if _, err := c.rollout(t, Config{Driver: DriverBroadcastJob}, nil).Run(t.Context()); !errors.Is(err, ErrNoOpenKruise) {
		t.Errorf("error %v, want %v", err, ErrNoOpenKruise)
	}
	if writes := c.writes(); len(writes) > 0 {
		t.Errorf("writes: %q", writes)
	}
}

func TestRunLeavesForeignObjectsAlone(t *testing.T) {
	t.Parallel()
	c := newCluster(endByName, node("a-set", ""))
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "test", Labels: map[string]string{labelManagedBy: "Helm"}}}
	if _, err := c.kube.CoreV1().ServiceAccounts("kube-system").Create(t.Context(), account, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	_, err := c.rollout(t, Config{Driver: DriverJob}, nil).Run(t.Context())
	if !errors.Is(err, ErrForeign) || !strings.HasPrefix(err.Error(), "ServiceAccount test ") {
		t.Errorf("error %v, want one of ServiceAccount test", err)
	}
	if writes := c.writes(); !slices.Equal(writes, []string{"create serviceaccounts "}) {
		t.Errorf("writes: %q, want only the test's own", writes)
	}
}

func TestStatusWithoutRun(t *testing.T) {
	t.Parallel()
	c := newCluster(nil, node("a", ""))
	if got, found, err := c.rollout(t, Config{Driver: DriverBroadcastJob}, nil).Status(t.Context()); found || err != nil {
		t.Errorf("Status = %v, %t, %v", got, found, err)
	}
}

// rollout fills in what the tests do not care about.
func (c *cluster) rollout(t *testing.T, config Config, progress func([]NodeState)) *Rollout {
	t.Helper()
	config.Name, config.Namespace, config.Image = "test", "kube-system", "image:1"
	if config.Timeout == 0 {
		config.Timeout = DefaultTimeout
	}
	if err := config.Validate(); err != nil {
		t.Fatal(err)
	}
	return &Rollout{Config: config, Kube: c.kube, Kruise: c.kruise, Progress: progress}
}

// endByName ends a pod as the name of its node says.
func endByName(pod *corev1.Pod) {
	switch pod.Spec.NodeName {
	case "a-set":
		end(pod, corev1.PodSucceeded, 0, `{"outcome":"set","providerID":"cn-hangzhou.i-1"}`)
	case "b-conflict":
		end(pod, corev1.PodRunning, 2, "Trying\nthe ID is another one\n")
	case "c-skipped":
		end(pod, corev1.PodSucceeded, 0, `{"outcome":"skipped","reason":"not an ECS instance"}`)
	}
}

func end(pod *corev1.Pod, phase corev1.PodPhase, code int32, message string) {
	pod.Status.Phase = phase
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Message: message},
	}}}
}

func node(name, providerID string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{ProviderID: providerID}}
}

func virtualNode(name string) *corev1.Node {
	n := node(name, "")
	n.Labels = map[string]string{"type": "virtual-kubelet"}
	return n
}
