package node

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

func withReady(status corev1.ConditionStatus) func(*corev1.Node) {
	return func(node *corev1.Node) { testkube.Ready(node).Status = status }
}

func withoutReady(node *corev1.Node) { node.Status.Conditions = nil }

// TestLiveKubeletIsNotDeleted: a kubelet that reports, or has not reported yet, keeps its Node, whatever ECS shows.
func TestLiveKubeletIsNotDeleted(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		state func(*corev1.Node)
		want  int
	}{
		"not ready":        {state: withReady(corev1.ConditionFalse)},
		"no condition yet": {state: withoutReady},
		"silent":           {state: withReady(corev1.ConditionUnknown), want: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				a := newAccount(t, emulator.Options{})
				c := newCluster(t, Options{API: a.Client})
				a.put(3)
				nodes := []*corev1.Node{
					nodeOf(emulator.Instance{ID: "i-hidden"}, test.state), nodeOf(emulator.Instance{ID: "i-1"}), nodeOf(emulator.Instance{ID: "i-2"}),
				}
				c.add(nodes...)
				if gone, _ := monitor(c, nodes, 30*time.Minute); gone != test.want {
					t.Errorf("%d nodes were called gone, want %d", gone, test.want)
				}
			})
		})
	}
}

// deletable returns a cluster of a silent node whose instance is released and has been missing for almost long enough, and two others.
func deletable(t *testing.T, api func(API) API) (*cluster, *corev1.Node) {
	t.Helper()
	a := newAccount(t, emulator.Options{})
	c := newCluster(t, Options{API: api(a.Client)})
	nodes := c.join(a.put(3))
	monitor(c, nodes, time.Minute)
	a.ReleaseInstance("i-0")
	if gone, _ := monitor(c, nodes, 2*time.Minute); gone != 0 {
		t.Fatalf("%d nodes were called gone", gone)
	}
	return c, nodes[0]
}

// during calls a function while ECS answers.
type during struct {
	API
	call func(alicloud.InstanceQuery)
}

func (d *during) DescribeInstances(ctx context.Context, query alicloud.InstanceQuery) ([]alicloud.Instance, error) {
	answer, err := d.API.DescribeInstances(ctx, query)
	if d.call != nil {
		d.call(query)
	}
	return answer, err
}

// TestNewNodeOfTheSameNameIsNotDeleted: while the last call to ECS is on its way, the Node is replaced by another of the same
// name, becomes ready again, or is deleted. None of them is called gone, as the unchanged one is.
func TestNewNodeOfTheSameNameIsNotDeleted(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(*corev1.Node)
		remove bool
		want   int
	}{
		"unchanged":    {want: 1},
		"replaced":     {change: func(node *corev1.Node) { node.UID = "another" }},
		"ready again":  {change: isReady},
		"not ready":    {change: withReady(corev1.ConditionFalse)},
		"new instance": {change: withProviderID("cn-hangzhou.i-1")},
		"deleted":      {remove: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				late := &during{}
				c, node := deletable(t, func(api API) API {
					late.API = api
					return late
				})
				late.call = func(alicloud.InstanceQuery) {
					indexer := c.nodes.Core().V1().Nodes().Informer().GetIndexer()
					switch {
					case test.remove:
						_ = indexer.Delete(node)
					case test.change != nil:
						changed := node.DeepCopy()
						test.change(changed)
						_ = indexer.Update(changed)
					}
				}
				if gone, _ := monitor(c, []*corev1.Node{node}, time.Minute); gone != test.want {
					t.Errorf("%d nodes were called gone, want %d", gone, test.want)
				}
			})
		})
	}
}

// TestDeletionCarriesUID: the stock controller's DELETE by name gets the UID and the version of the Node that was examined. Without such
// a Node it does not leave the process.
func TestDeletionCarriesUID(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var requests []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		requests = append(requests, r.Method+" "+r.URL.Path+" "+string(body))
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Success"}`)
	}))
	t.Cleanup(server.Close)
	permits := NewDeletionPermits()
	config := &rest.Config{Host: server.URL}
	config.Wrap(permits.Transport)
	client := kubernetes.NewForConfigOrDie(config)
	nodes := client.CoreV1().Nodes()

	permits.allow(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "gone", UID: "uid-1", ResourceVersion: "7"}})
	if err := nodes.Delete(t.Context(), "gone", metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"gone", "never-gone"} {
		if err := nodes.Delete(t.Context(), name, metav1.DeleteOptions{}); err == nil {
			t.Errorf("node %s was deleted without permit", name)
		}
	}
	if err := nodes.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); err == nil {
		t.Error("all nodes were deleted")
	}
	if err := client.CoreV1().Pods("default").Delete(t.Context(), "pod", metav1.DeleteOptions{}); err != nil {
		t.Errorf("other objects are deleted as before: %v", err)
	}
	if len(requests) != 2 || !strings.Contains(requests[0], `"preconditions":{"uid":"uid-1","resourceVersion":"7"}`) ||
		strings.Contains(requests[1], "preconditions") {
		t.Errorf("the API server received %q", requests)
	}
}

// TestOldAnswersDoNotCount: an absence before the instance was seen again, before the node was ready again, or before a long pause
// is no confirmation.
func TestOldAnswersDoNotCount(t *testing.T) {
	t.Parallel()
	for name, between := range map[string]func(t *testing.T, c *cluster, node *corev1.Node, api *switchable, cloud API){
		"ready meanwhile": func(_ *testing.T, c *cluster, node *corev1.Node, _ *switchable, _ API) {
			well := node.DeepCopy()
			isReady(well)
			monitor(c, []*corev1.Node{well}, period)
		},
		"seen meanwhile": func(t *testing.T, c *cluster, _ *corev1.Node, api *switchable, cloud API) {
			t.Helper()
			hidden := api.API
			api.API = cloud
			if instance, _, err := c.snapshot.ask(t.Context(), "i-0"); instance.ID == "" || err != nil { // by another controller
				t.Errorf("instance %q, %v", instance.ID, err)
			}
			api.API = hidden
		},
		"nobody asked for long": func(*testing.T, *cluster, *corev1.Node, *switchable, API) { time.Sleep(50 * time.Minute) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				a := newAccount(t, emulator.Options{})
				api := &switchable{API: a.Client}
				c := newCluster(t, Options{API: api})
				nodes := c.join(a.put(3))
				monitor(c, nodes, time.Minute)
				api.API = lens{a.Client, only("i-1", "i-2")}
				if gone, _ := monitor(c, nodes, 100*time.Second); gone != 0 {
					t.Fatalf("%d nodes were called gone", gone)
				}
				between(t, c, nodes[0], api, a.Client)
				if gone, _ := monitor(c, nodes, 100*time.Second); gone != 0 {
					t.Errorf("%d nodes were called gone after absences of %s", gone, 100*time.Second)
				}
				if gone, _ := monitor(c, nodes, 3*time.Minute); gone != 1 {
					t.Errorf("%d nodes were called gone in the end, want 1", gone)
				}
			})
		})
	}
}

// TestUnseenNodesAreKept: a node that waits for its initialization and whose instance nobody ever saw is kept; one that is initialized
// is, until this process has waited for it, however old the API server's clock makes it.
func TestUnseenNodesAreKept(t *testing.T) {
	t.Parallel()
	old := func(node *corev1.Node) { node.CreationTimestamp = metav1.NewTime(time.Now().Add(-time.Hour)) }
	for name, test := range map[string]struct {
		with   func(*corev1.Node)
		during time.Duration
		want   int
	}{
		"uninitialized":                   {with: tainted, during: time.Hour},
		"old for a clock that is ahead":   {with: old, during: 4 * time.Minute},
		"missing for as long as it takes": {with: old, during: 10 * time.Minute, want: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				a := newAccount(t, emulator.Options{})
				c := newCluster(t, Options{API: a.Client})
				a.put(2)
				nodes := []*corev1.Node{nodeOf(emulator.Instance{ID: "i-none"}, test.with), nodeOf(emulator.Instance{ID: "i-1"})}
				c.add(nodes...)
				if gone, _ := monitor(c, nodes, test.during); gone != test.want {
					t.Errorf("%d nodes were called gone, want %d", gone, test.want)
				}
			})
		})
	}
}

// TestOneLinePerChange: a missing instance is one log line per change of its state, not one per call.
func TestOneLinePerChange(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAccount(t, emulator.Options{})
		c := newCluster(t, Options{API: a.Client})
		nodes := c.join(a.put(3))
		monitor(c, nodes, time.Minute)
		a.ReleaseInstance("i-0")
		a.ReleaseInstance("i-1")
		var lines []string
		logger := funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})
		ctx := klog.NewContext(t.Context(), logger)
		for range 48 { // four minutes, in which one may go
			for _, node := range nodes {
				if exists, err := c.InstanceExists(ctx, node); err == nil && !exists {
					nodes = slices.DeleteFunc(slices.Clone(nodes), func(other *corev1.Node) bool { return other == node })
				}
			}
			time.Sleep(period)
		}
		if len(lines) != 4 { // two are missing, one goes, the other is one too many
			t.Errorf("%d lines:\n%s", len(lines), strings.Join(lines, "\n"))
		}
	})
}
