package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/selfexec"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/initor"
)

func TestMain(m *testing.M) { selfexec.Main(m, main) }

// program runs the program under a name and returns its exit code and what it wrote.
func program(t *testing.T, name string, env []string, args ...string) (code int, output string) {
	t.Helper()
	result := selfexec.Run(t, "/usr/bin/"+name, append([]string{"HOME=" + t.TempDir()}, env...), args...)
	return result.Code, result.Output
}

func TestBadInputIsOneLine(t *testing.T) {
	t.Parallel()
	malformed := writeFile(t, "kubeconfig", "no kubeconfig")
	noVPC := writeFile(t, "cloud-config.conf", `{"Global":{"accessKeyID":"YQ==","accessKeySecret":"c2VjcmV0","region":"cn-hangzhou"}}`)
	noBase64 := writeFile(t, "cloud-config.conf", `{"Global":{"accessKeyID":"YQ==","accessKeySecret":"plain-secret"}}`)
	for _, test := range []struct {
		name string
		env  []string
		args []string
		want []string // parts of the line
	}{
		{name: "provider-initor", want: []string{"--node-name", "NODE_NAME", "spec.nodeName"}},
		{name: "init", want: []string{"init: ", "--node-name"}},
		{name: "provider-initor", args: []string{"--nodename=a"}, want: []string{"--nodename"}},
		{name: "provider-initor", args: []string{"init", "node-1"}, want: []string{`"node-1"`}},
		{name: "init", args: []string{"init"}, want: []string{`"init"`}},
		{name: "provider-initor", env: []string{"NODE_NAME=a"}, want: []string{"--kubeconfig", "KUBECONFIG", "pod"}},
		{name: "provider-initor", env: []string{"NODE_NAME=a", "KUBECONFIG=/does/not/exist"}, want: []string{"KUBECONFIG", "/does/not/exist"}},
		{name: "provider-initor", env: []string{"NODE_NAME=a", "KUBECONFIG=" + malformed}, want: []string{"KUBECONFIG", malformed}},
		{name: "provider-initor", args: []string{"--node-name=a", "--kubeconfig=/does/not/exist"},
			want: []string{"--kubeconfig", "/does/not/exist"}},
		{name: "provider-initor", args: []string{"--node-name=a", "--timeout=-1s"}, want: []string{"--timeout", "-1s", "positive"}},
		{name: "provider-initor", args: []string{"--node-name=a", "--logging-format=xml"}, want: []string{"xml", "text"}},
		{name: "provider-initor", args: []string{"--node-name=a", "--cloud-config=/does/not/exist"},
			want: []string{"--cloud-config", "/does/not/exist"}},
		{name: "provider-initor", args: []string{"--node-name=a", "--cloud-config=" + noVPC}, want: []string{noVPC, "Global.vpcid"}},
		{name: "provider-initor", args: []string{"--node-name=a", "--cloud-config=" + noBase64},
			want: []string{noBase64, "Global.accessKeySecret"}},
		{name: "provider-initor", args: []string{"--node-name=a", "--provider-id=i-1"}, want: []string{"--provider-id", `"i-1"`}},
		{name: "provider-initor", args: []string{"--node-name=a", "--cloud-config-map=cloud-config"},
			want: []string{`"cloud-config"`, "NAMESPACE/NAME"}},
		{
			name: "provider-initor", args: []string{"--node-name=a"}, env: []string{"METADATA_ENDPOINT=100.100.100.200"},
			want: []string{"METADATA_ENDPOINT", `"100.100.100.200"`, "http://100.100.100.200"},
		},
	} {
		code, output := program(t, test.name, test.env, test.args...)
		if code != initor.ExitFailed || strings.Count(output, "\n") != 1 {
			t.Errorf("%s %q %q: exit code %d with %q, want %d with one line", test.name, test.env, test.args, code, output, initor.ExitFailed)
		}
		if strings.Contains(output, "plain-secret") || strings.Contains(output, "c2VjcmV0") {
			t.Errorf("%s %q %q: %q shows the secret", test.name, test.env, test.args, output)
		}
		for _, part := range test.want {
			if !strings.Contains(output, part) {
				t.Errorf("%s %q %q: %q does not hold %q", test.name, test.env, test.args, output, part)
			}
		}
	}
}

func TestOutcomes(t *testing.T) {
	t.Parallel()
	up := newMetadata(t, "i-1")
	off := newMetadata(t, "")
	for name, test := range map[string]struct {
		have, metadata string
		args           []string
		wantCode       int
		wantLast       []string // parts of the last line
		wantStored     string
	}{
		"set":  {metadata: up, wantLast: []string{"Set the provider ID", "cn-hangzhou.i-1"}, wantStored: "cn-hangzhou.i-1"},
		"init": {metadata: up, args: []string{"init"}, wantLast: []string{`outcome="set"`}, wantStored: "cn-hangzhou.i-1"},
		"JSON": {metadata: up, args: []string{"--logging-format=json"}, wantLast: []string{`"outcome":"set"`, `"node":"node-1"`},
			wantStored: "cn-hangzhou.i-1"},
		"equal": {have: "cn-hangzhou.i-1", metadata: up, wantLast: []string{`outcome="unchanged"`}, wantStored: "cn-hangzhou.i-1"},
		"conflict": {have: "cn-hangzhou.i-2", metadata: up, wantCode: initor.ExitConflict,
			wantLast: []string{"cn-hangzhou.i-1", "cn-hangzhou.i-2"}, wantStored: "cn-hangzhou.i-2"},
		"not ECS": {metadata: off, wantLast: []string{`outcome="skipped"`, "not an ECS instance"}},
		"not ECS, but has to be": {
			metadata: off, args: []string{"--require-ecs"}, wantCode: initor.ExitUnidentified, wantLast: []string{"node-1", "not an ECS instance"},
		},
		"given": {metadata: off, args: []string{"--provider-id=alicloud://cn-hangzhou.i-1"}, wantLast: []string{`source="flag"`},
			wantStored: "cn-hangzhou.i-1"},
		"no such node": {metadata: up, args: []string{"--node-name=node-2"}, wantCode: initor.ExitFailed, wantLast: []string{"node-2"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := &apiServer{node: corev1.Node{
				TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
				ObjectMeta: metav1.ObjectMeta{Name: "node-1", UID: "uid-1", ResourceVersion: "7"},
				Spec:       corev1.NodeSpec{ProviderID: test.have},
			}}
			env := []string{"NODE_NAME=node-1", "KUBECONFIG=" + server.kubeconfig(t), "METADATA_ENDPOINT=" + test.metadata}
			code, output := program(t, "provider-initor", env, test.args...)
			lines := strings.Split(strings.TrimSpace(output), "\n")
			for _, part := range test.wantLast {
				if last := lines[len(lines)-1]; !strings.Contains(last, part) {
					t.Errorf("last line %q does not hold %q", last, part)
				}
			}
			if stored := server.providerID(); code != test.wantCode || stored != test.wantStored {
				t.Errorf("exit code %d, stored %q, want %d, %q; output:\n%s", code, stored, test.wantCode, test.wantStored, output)
			}
		})
	}
}

// newMetadata serves the metadata of an instance in cn-hangzhou, or of none if id is empty.
func newMetadata(t *testing.T, id string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		values := map[string]string{"/latest/meta-data/instance-id": id, "/latest/meta-data/region-id": "cn-hangzhou"}
		if value := values[r.URL.Path]; id != "" && value != "" {
			reply(w, value)
			return
		}
		w.WriteHeader(http.StatusNotFound)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// apiServer serves one node.
type apiServer struct {
	mu   sync.Mutex // guards node
	node corev1.Node
}

func (s *apiServer) providerID() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.node.Spec.ProviderID
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.URL.Path != "/api/v1/nodes/node-1" {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	if r.Method == http.MethodPatch {
		patch, err := io.ReadAll(r.Body)
		if err == nil {
			err = json.Unmarshal(patch, &s.node) // good enough for a merge patch that only sets fields
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
	}
	w.Header().Set("Content-Type", "application/json")
	text, err := json.Marshal(s.node)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	reply(w, string(text))
}

// kubeconfig starts the server and returns a kubeconfig file for it.
func (s *apiServer) kubeconfig(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return writeFile(t, "kubeconfig", fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: test, cluster: {server: %q}}]
contexts: [{name: test, context: {cluster: test}}]
current-context: test
`, server.URL))
}

func reply(w http.ResponseWriter, text string) {
	if _, err := io.WriteString(w, text); err != nil {
		panic(err)
	}
}

func writeFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
