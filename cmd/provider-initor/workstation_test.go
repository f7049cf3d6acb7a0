package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/initor"
)

func TestWorkstationBadInputIsOneLine(t *testing.T) {
	t.Parallel()
	noOpenKruise := serveNodes(t)
	for _, test := range []struct {
		args []string
		want []string // parts of the line
	}{
		{args: []string{"run"}, want: []string{"--kubeconfig", "KUBECONFIG"}},
		{args: []string{"run", "--output=xml"}, want: []string{"--output", "xml", "json"}},
		{args: []string{"run", "now"}, want: []string{`"now"`}},
		{args: []string{"run", "--kubeconfig=" + noOpenKruise}, want: []string{"OpenKruise", "--driver job"}},
		{args: []string{"run", "--kubeconfig=" + noOpenKruise, "--driver=job", "--keep"}, want: []string{"keep", "broadcastjob"}},
		{args: []string{"manifest", "--driver=daemonset", "--name=A", "--timeout=0s"}, want: []string{"daemonset", `"A"`, "0s"}},
		{args: []string{"status", "--driver=job", "--kubeconfig=/does/not/exist"}, want: []string{"/does/not/exist"}},
		{args: []string{"check", "--output=yaml"}, want: []string{"--output", "yaml"}},
		{args: []string{"check", "--kubeconfig=" + noOpenKruise, "--cloud-config=/does/not/exist"},
			want: []string{"--cloud-config", "/does/not/exist"}},
	} {
		code, output := program(t, "provider-initor", nil, test.args...)
		if code != initor.ExitFailed || strings.Count(output, "\n") != 1 {
			t.Errorf("%q: exit code %d with %q, want %d with one line", test.args, code, output, initor.ExitFailed)
		}
		for _, part := range test.want {
			if !strings.Contains(output, part) {
				t.Errorf("%q: %q does not hold %q", test.args, output, part)
			}
		}
	}
}

func TestInitHasNoOtherCommands(t *testing.T) {
	t.Parallel()
	if code, output := program(t, "init", nil, "run"); code != initor.ExitFailed || !strings.Contains(output, `"run"`) {
		t.Errorf("exit code %d with %q, want the argument refused", code, output)
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	good, none := nodeWithID("good", "cn-hangzhou.i-1"), nodeWithID("none", "")
	virtual := nodeWithID("virtual", "")
	virtual.Labels = map[string]string{"type": "virtual-kubelet"}
	for name, test := range map[string]struct {
		nodes    []corev1.Node
		args     []string
		wantCode int
		want     string
	}{
		"good": {nodes: []corev1.Node{good, virtual}, want: `NODE  PROVIDER ID      VERDICT  REASON
good  cn-hangzhou.i-1  ok       -
`},
		"bad": {nodes: []corev1.Node{good, none}, wantCode: initor.ExitNodes, want: `NODE  PROVIDER ID      VERDICT  REASON
good  cn-hangzhou.i-1  ok       -
none  -                missing  -
provider-initor: nodes need attention: 1 of 2 have no provider ID, a foreign one or a wrong one
`},
		"JSON": {nodes: []corev1.Node{good}, args: []string{"--output=json"}, want: `{
  "nodes": [
    {
      "node": "good",
      "providerID": "cn-hangzhou.i-1",
      "verdict": "ok"
    }
  ]
}
`},
		"no nodes": {args: []string{"-o", "json"}, want: "{\n  \"nodes\": []\n}\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := append([]string{"check", "--kubeconfig=" + serveNodes(t, test.nodes...)}, test.args...)
			code, output := program(t, "provider-initor", nil, args...)
			if diff := cmp.Diff(test.want, output); code != test.wantCode || diff != "" {
				t.Errorf("exit code %d, want %d; output (-want +got):\n%s", code, test.wantCode, diff)
			}
		})
	}
}

func TestManifestNeedsNoCluster(t *testing.T) {
	t.Parallel()
	code, output := program(t, "provider-initor", nil, "manifest", "--image=example.com/initor:1", "--name=mine", "--keep")
	for _, part := range []string{"kind: BroadcastJob", "image: example.com/initor:1", "name: mine", "type: Never"} {
		if code != 0 || !strings.Contains(output, part) {
			t.Errorf("exit code %d; the manifest does not hold %q:\n%s", code, part, output)
		}
	}
}

func TestManifestOfJobsIsForTheNodesThatAreThere(t *testing.T) {
	t.Parallel()
	kubeconfig := serveNodes(t, nodeWithID("a", ""), nodeWithID("b", ""))
	code, output := program(t, "provider-initor", nil, "manifest", "--driver=job", "--kubeconfig="+kubeconfig)
	if code != 0 || strings.Count(output, "kind: Job\n") != 2 || !strings.Contains(output, "nodeName: b\n") {
		t.Errorf("exit code %d with\n%s\nwant two Jobs", code, output)
	}
}

func TestDefaultImage(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]string{
		"v1.2.3":                      imageRepository + ":1.2.3",
		"v0.0.0-master+$Format:%H$":   imageRepository + ":0.0.0-master",
		"v0.1.0-4-g60ed5f4-dirty+abc": imageRepository + ":0.1.0-4-g60ed5f4-dirty",
	} {
		if got := defaultImage(version); got != want {
			t.Errorf("defaultImage(%q) = %q, want %q", version, got, want)
		}
	}
}

// serveNodes serves a list of nodes and returns a kubeconfig for it. It knows no other resource, and no OpenKruise.
func serveNodes(t *testing.T, nodes ...corev1.Node) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		var answer any = corev1.NodeList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "NodeList"}, Items: nodes}
		if r.URL.Path != "/api/v1/nodes" {
			w.WriteHeader(http.StatusNotFound)
			answer = metav1.Status{
				TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
				Reason: metav1.StatusReasonNotFound, Code: http.StatusNotFound,
			}
		}
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			panic(err)
		}
	}))
	t.Cleanup(server.Close)
	return writeFile(t, "kubeconfig", fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: test, cluster: {server: %q}}]
contexts: [{name: test, context: {cluster: test}}]
current-context: test
`, server.URL))
}

func nodeWithID(name, id string) corev1.Node {
	return corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{ProviderID: id}}
}

func TestInitReports(t *testing.T) {
	t.Parallel()
	server := &apiServer{node: nodeWithID("node-1", "")}
	report := writeFile(t, "termination-log", "")
	env := []string{
		"NODE_NAME=node-1", "KUBECONFIG=" + server.kubeconfig(t), "METADATA_ENDPOINT=" + newMetadata(t, "i-1"), "REPORT_FILE=" + report,
	}
	code, output := program(t, "init", env)
	text, err := os.ReadFile(report)
	got, ok := initor.ParseReport(string(text))
	want := initor.Result{Outcome: initor.OutcomeSet, ProviderID: "cn-hangzhou.i-1", Source: "metadata service"}
	if err != nil || code != 0 || !ok || got != want {
		t.Errorf("exit code %d, report %q, %v, want %+v; output:\n%s", code, text, err, want, output)
	}
}

func TestInitSucceedsWithoutAReader(t *testing.T) {
	t.Parallel()
	server := &apiServer{node: nodeWithID("node-1", "")}
	env := []string{
		"NODE_NAME=node-1", "KUBECONFIG=" + server.kubeconfig(t), "METADATA_ENDPOINT=" + newMetadata(t, "i-1"), "REPORT_FILE=/does/not/exist",
	}
	if code, output := program(t, "init", env); code != 0 || server.providerID() != "cn-hangzhou.i-1" {
		t.Errorf("exit code %d, want the node set and 0; output:\n%s", code, output)
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"provider-initor", "init"} {
		code, output := program(t, name, nil, "--version")
		if code != 0 || !regexp.MustCompile(`^provider-initor v\S+ \(commit \S+, go\S+, \w+/\w+\)\n$`).MatchString(output) {
			t.Errorf("%s: exit code %d, %q", name, code, output)
		}
	}
}
