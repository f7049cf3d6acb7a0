//go:build linux && real

package real

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/cluster"
)

// vpcClient and internetClient are places to send requests from, besides the machines.
const (
	vpcClient      = "vpc-client"
	internetClient = "internet-client"
)

func instanceID(i int) string { return fmt.Sprintf("i-sandbox%04d", i) }

func nodeName(i int) string { return fmt.Sprintf("node-%d", i) }

// ask makes a request to the sandbox's URL.
func ask(ctx context.Context, method, path, body string) (string, error) {
	return request(ctx, method, sandbox.url+path, body)
}

// request makes a request and returns the answer.
func request(ctx context.Context, method, url, body string) (string, error) {
	r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", err
	}
	answer, err := io.ReadAll(response.Body)
	if err = errors.Join(err, response.Body.Close()); err != nil {
		return "", err
	}
	if response.StatusCode/100 != 2 {
		return "", fmt.Errorf("%s %s: %s: %s", method, url, response.Status, answer)
	}
	return string(answer), nil
}

// order makes a request to the sandbox's URL that must succeed.
func order(t *testing.T, method, path, body string) {
	t.Helper()
	// Tests clean up with orders, when their context has ended.
	if _, err := ask(context.WithoutCancel(t.Context()), method, path, body); err != nil {
		t.Fatal(err)
	}
}

// kubectl runs kubectl as the administrator and returns what it prints.
func kubectl(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	cmd := exec.Command(filepath.Join(sandbox.binDir, "kubectl"), append([]string{"--kubeconfig", kubeconfig()}, args...)...)
	cmd.Stdin = strings.NewReader(stdin)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return stdout.String()
}

// apply applies a manifest until the test ends.
func apply(t *testing.T, manifest string) {
	t.Helper()
	kubectl(t, manifest, "apply", "-f", "-")
	t.Cleanup(func() { kubectl(t, manifest, "delete", "--ignore-not-found", "--timeout=90s", "-f", "-") })
}

// testdata reads a manifest of users with its placeholders filled in and its image replaced.
func testdata(t *testing.T, name, image string, replace ...string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return replaceImage(strings.NewReplacer(replace...).Replace(string(content)), image)
}

// replaceImage puts an image into the place of each one in a manifest.
func replaceImage(manifest, image string) string {
	var out strings.Builder
	for line := range strings.Lines(manifest) {
		if at := strings.Index(line, "image: "); at >= 0 && !strings.HasPrefix(strings.TrimSpace(line), "#") {
			line = line[:at] + "image: " + image + "\n"
		}
		out.WriteString(line)
	}
	return out.String()
}

// cloudClient is a client of the cloud's OpenAPI with the account's own key.
func cloudClient(t *testing.T) *alicloud.Client {
	t.Helper()
	host := strings.TrimPrefix(sandbox.url, "http://")
	client, err := alicloud.New(alicloud.Options{
		Region:      cluster.Region,
		Credentials: alicloud.StaticCredentials{AccessKeyID: cluster.AccessKeyID, AccessKeySecret: cluster.AccessKeySecret},
		Endpoints:   alicloud.Endpoints{PlainHTTP: true, SLB: host, NLB: host, VPC: host, ECS: host},
	})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// until polls until see returns nothing; what it returns instead is what is still missing.
func until(t *testing.T, what string, see func(ctx context.Context) string) {
	t.Helper()
	missing := ""
	begin := time.Now()
	// Clean-ups wait, too, when the test's context has ended.
	err := wait.PollUntilContextTimeout(context.WithoutCancel(t.Context()), look, eventDeadline, true,
		func(ctx context.Context) (bool, error) {
			seen := see(ctx)
			if ctx.Err() == nil { // what fails because the time is over says nothing
				missing = seen
			}
			return seen == "", nil
		})
	if err != nil {
		t.Fatalf("%s: %s: %v\n%s", what, missing, err, cluster.LastErrors(sandbox.dir))
	}
	t.Logf("%s after %.1fs", what, time.Since(begin).Seconds())
}

// answers waits until url answers from a place, and returns the answer.
func answers(t *testing.T, from place, url string) reply {
	t.Helper()
	var r reply
	until(t, url+" answers", func(ctx context.Context) string {
		var err error
		if r, err = from.get(ctx, url); err != nil {
			return err.Error()
		}
		return ""
	})
	return r
}

// answersAlways waits until many requests in a row are answered. The first answer of a new Service shows that one machine forwards its
// connections, and a stream of requests needs all.
func answersAlways(t *testing.T, from place, url string) {
	t.Helper()
	const inARow = 20
	until(t, url+" always answers", func(ctx context.Context) string {
		for range inARow {
			if _, err := from.get(ctx, url); err != nil {
				return err.Error()
			}
		}
		return ""
	})
}

// vipOf waits for the address of a Service's load balancer, or the name of an NLB.
func vipOf(t *testing.T, service string) string {
	t.Helper()
	vip := ""
	until(t, "Service "+service+" has an address", func(ctx context.Context) string {
		s, err := sandbox.client.CoreV1().Services(metav1.NamespaceDefault).Get(ctx, service, metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		if len(s.Status.LoadBalancer.Ingress) == 0 {
			return "no address yet"
		}
		vip = cmp.Or(s.Status.LoadBalancer.Ingress[0].IP, s.Status.LoadBalancer.Ingress[0].Hostname)
		return ""
	})
	return vip
}

// nodeIs waits until a Node is ready, or is not.
func nodeIs(t *testing.T, name string, ready bool) {
	t.Helper()
	until(t, fmt.Sprintf("node %s has ready=%v", name, ready), func(ctx context.Context) string {
		node, err := sandbox.client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		for _, condition := range node.Status.Conditions {
			if condition.Type == corev1.NodeReady && (condition.Status == corev1.ConditionTrue) != ready {
				return fmt.Sprintf("Ready=%s", condition.Status)
			}
		}
		return ""
	})
}

// podsOf lists the pods with a label "app=name".
func podsOf(ctx context.Context, namespace, app string) ([]corev1.Pod, error) {
	list, err := sandbox.client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: app})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// backends are the instances behind the load balancer with an address.
func backends(ctx context.Context, vip string) ([]string, error) {
	var state struct {
		LoadBalancers []struct {
			Address       string
			VServerGroups []struct {
				BackendServers []struct {
					ServerID string `json:"ServerId"`
				} `json:"backendServers"`
			} `json:"vServerGroups"`
		} `json:"loadBalancers"`
	}
	text, err := ask(ctx, http.MethodGet, "/_emulator/state", "")
	if err == nil {
		err = json.Unmarshal([]byte(text), &state)
	}
	if err != nil {
		return nil, err
	}
	var servers []string
	for _, lb := range state.LoadBalancers {
		for _, group := range lb.VServerGroups {
			for _, server := range group.BackendServers {
				if lb.Address == vip {
					servers = append(servers, server.ServerID)
				}
			}
		}
	}
	return servers, nil
}

// leavesNothing lets a test fail that ends with a load balancer that was not there before: the Service it was for is gone, and somebody
// pays for it. A test calls it before it starts a manager or applies a Service.
func leavesNothing(t *testing.T) {
	t.Helper()
	before := loadBalancers(t)
	t.Cleanup(func() {
		left := loadBalancers(t)
		maps.DeleteFunc(left, func(id, _ string) bool { return before[id] != "" })
		if len(left) > 0 {
			t.Errorf("load balancers that the test leaves, with their names: %v", left)
		}
	})
}

// loadBalancers are the names of all load balancers by their ids.
func loadBalancers(t *testing.T) map[string]string {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	client, found := cloudClient(t), map[string]string{}
	clbs, err := client.DescribeLoadBalancers(ctx, alicloud.LoadBalancerQuery{})
	if err != nil {
		t.Fatal(err)
	}
	for _, lb := range clbs {
		found[lb.ID] = lb.Name
	}
	nlbs, err := client.ListNLBs(ctx, alicloud.NLBQuery{})
	if err != nil {
		t.Fatal(err)
	}
	for _, lb := range nlbs {
		found[lb.ID] = lb.Name
	}
	return found
}

// manifestOfUsers installs the manager as users do, until the test ends: ConfigMap, roles and DaemonSet on nodes labeled master.
func manifestOfUsers(t *testing.T) {
	t.Helper()
	leavesNothing(t)
	for i := range nodeCount {
		kubectl(t, "", "label", "node", nodeName(i+1), "--overwrite", "node-role.kubernetes.io/master=")
		t.Cleanup(func() { kubectl(t, "", "label", "node", nodeName(i+1), "node-role.kubernetes.io/master-") })
	}
	configMapOfUsers(t)
	apply(t, testdata(t, "ccm.yaml", cluster.ManagerImage, "- --cluster-cidr=${ClusterCIDR}",
		"- --cluster-cidr="+podCIDR+"\n        - --node-gone-over=10s"))
}

// configMapOfUsers makes the ConfigMap as users do, until the test ends.
func configMapOfUsers(t *testing.T) {
	t.Helper()
	script, err := filepath.Abs("testdata/configmap-ccm.sh")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("bash", script)
	cmd.Dir = t.TempDir()
	// The script calls kubectl by name.
	if err := os.Symlink(filepath.Join(sandbox.binDir, "kubectl"), filepath.Join(cmd.Dir, "kubectl")); err != nil {
		t.Fatal(err)
	}
	cmd.Env = append(os.Environ(), "PATH="+cmd.Dir+":"+os.Getenv("PATH"), "KUBECONFIG="+kubeconfig(),
		"ACCESS_KEY_ID="+cluster.AccessKeyID, "ACCESS_KEY_SECRET="+cluster.AccessKeySecret)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("configmap-ccm.sh: %v\n%s", err, out)
	}
	t.Cleanup(func() { kubectl(t, "", "-n", "kube-system", "delete", "configmap", "cloud-config") })
}
