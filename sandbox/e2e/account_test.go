//go:build unix

package e2e

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/e2e/account"
)

// accountWorld is a sandbox with the stories for accounts of users.
type accountWorld struct {
	*testing.T
	url   string
	suite *account.Suite
}

// storiesIn prepares the stories for a sandbox that runs in a directory, from the files that a user would give.
func storiesIn(t *testing.T, dir string) accountWorld {
	t.Helper()
	o, err := account.InSandbox(t.Context(), dir, filepath.Join(binDir, "cloud-controller-manager"), filepath.Join(t.TempDir(), "manager.log"))
	if err != nil {
		t.Fatal(err)
	}
	sandbox, ok := o.Cluster.(*account.Sandbox)
	if !ok {
		t.Fatalf("the cluster is a %T", o.Cluster)
	}
	return accountWorld{T: t, url: sandbox.URL, suite: account.New(o)}
}

// upForStories runs a sandbox for stories and returns its directory.
func upForStories(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "sandbox")
	p := start(t, t.TempDir(), "up", "--nodes", "2", "--node-ip", "--dir", dir)
	p.untilReady()
	t.Cleanup(p.stop)
	return dir
}

// ask reads a page of the admin API.
func (w accountWorld) ask(page string, into any) {
	w.Helper()
	request, err := http.NewRequestWithContext(context.WithoutCancel(w.Context()), http.MethodGet, w.url+"/_emulator/"+page, http.NoBody)
	if err != nil {
		w.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		w.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil {
		err = json.Unmarshal(body, into)
	}
	if err != nil {
		w.Fatal(err)
	}
}

// remains is what stories can leave in the cloud.
type remains struct {
	LoadBalancers, NetworkLoadBalancers, ServerGroups, AccessControlLists, EIPs []struct{}
	RouteTables                                                                 []struct {
		RouteEntries []struct{ Type, DestinationCidrBlock string }
	}
	Instances []struct {
		InstanceID string `json:"InstanceId"`
	}
}

func (w accountWorld) remains() remains {
	w.Helper()
	var r remains
	w.ask("state", &r)
	return r
}

// nothingRemains checks that the cloud has what it had before.
func (w accountWorld) nothingRemains() {
	w.Helper()
	r := w.remains()
	if n := len(r.LoadBalancers) + len(r.NetworkLoadBalancers) + len(r.ServerGroups) + len(r.AccessControlLists) + len(r.EIPs); n > 0 ||
		len(r.Instances) != 2 {
		w.Errorf("left behind: %+v", r)
	}
	for _, table := range r.RouteTables {
		for _, entry := range table.RouteEntries {
			if entry.Type == "Custom" {
				w.Errorf("left behind: the route entry %+v", entry)
			}
		}
	}
}

// TestAccountStories: the stories that make e2e-cloud runs on an account work in the sandbox, make no more calls than they say before, and
// leave nothing behind.
func TestAccountStories(t *testing.T) {
	t.Parallel()
	w := storiesIn(t, upForStories(t))
	begun := time.Now()
	w.suite.Run(t)
	w.nothingRemains()

	var journal struct{ Calls []emulator.Call }
	w.ask("calls", &journal)
	writes, reads, stated := map[string]int{}, 0, map[string]int{}
	for _, call := range journal.Calls {
		if call.Kind != "write" {
			reads++
		} else if call.Product == "slb" || call.Product == "nlb" {
			writes[call.Product+" "+call.Action]++
		}
	}
	for _, story := range account.Stories() {
		for call, n := range story.Writes {
			stated[call] += n
		}
	}
	for _, call := range slices.Sorted(maps.Keys(writes)) {
		t.Logf("%s: %d calls, %d stated", call, writes[call], stated[call])
		if writes[call] > stated[call] {
			t.Errorf("%s was called %d times, stated are %d", call, writes[call], stated[call])
		}
	}
	t.Logf("%d reads in %s", reads, time.Since(begun))
}

// storiesDir leads the process that is killed to its sandbox.
const storiesDir = "E2E_STORIES_DIR"

// TestAccountStoriesChild runs the stories for TestAccountStoriesKilled, until that kills it.
func TestAccountStoriesChild(t *testing.T) {
	t.Parallel()
	dir := os.Getenv(storiesDir)
	if dir == "" {
		t.Skip("TestAccountStoriesKilled runs this")
	}
	storiesIn(t, dir).suite.Run(t)
}

// TestAccountStoriesKilled: what stories have made that were killed is removed by the next command, also the Node that was joining.
func TestAccountStoriesKilled(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	dir := upForStories(t)
	w := storiesIn(t, dir)
	child := exec.Command(os.Args[0], "-test.run=^TestAccountStoriesChild$") //nolint:noctx // it is killed
	child.Env = append(os.Environ(), storiesDir+"="+dir, "SANDBOX_BIN_DIR="+binDir)
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	waited := make(chan error, 1)
	go func() { waited <- child.Wait() }()
	client := clientOf(t, dir)
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 3*time.Minute, true, func(context.Context) (bool, error) {
		r := w.remains()
		return len(r.LoadBalancers) > 0 && len(r.Instances) > 2, nil
	})
	if err != nil {
		t.Errorf("the stories have not come to the instance that joins: %v, %+v", err, w.remains())
	}
	if err = child.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := <-waited; err == nil {
		t.Error("the stories came to their end before they were killed")
	}
	if err := w.suite.Clean(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.nothingRemains()
	if _, err := client.CoreV1().Namespaces().Get(t.Context(), account.Namespace, metav1.GetOptions{}); err == nil {
		t.Error("the namespace is left")
	}
	if err := w.suite.Clean(t.Context()); err != nil {
		t.Errorf("a second time: %v", err)
	}
}
