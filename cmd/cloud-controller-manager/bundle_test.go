package main

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/selfexec"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
)

const bearer = "bearer-token-of-the-kubeconfig"

// leaking is an API server that has the secrets everywhere: in events, in annotations, in environments and in logs.
func leaking(secrets ...string) http.HandlerFunc {
	var texts []string
	for _, secret := range secrets {
		texts = append(texts, secret, base64.StdEncoding.EncodeToString([]byte(secret)))
	}
	all := strings.Join(texts, " ")
	list := func(kind, item string) string {
		return fmt.Sprintf(`{"kind":"%sList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[%s]}`, kind, item)
	}
	answers := map[string]string{
		"/version": `{"major":"1","minor":"37","gitVersion":"v1.37.1"}`,
		"/api/v1/services": list("Service",
			fmt.Sprintf(`{"metadata":{"name":"web","namespace":"default","uid":"u1","annotations":{"service.beta.kubernetes.io/alibaba-cloud-loadbalancer-name":%[1]q,
			"kubectl.kubernetes.io/last-applied-configuration":%[1]q}},"spec":{"type":"LoadBalancer"},"status":{"conditions":[{"type":"Synced","status":"False","reason":"Why","message":%[1]q}]}}`, all)),
		"/api/v1/nodes": list("Node", fmt.Sprintf(`{"metadata":{"name":"n1","annotations":{"a":%q}}}`, all)),
		"/api/v1/events": list("Event",
			fmt.Sprintf(`{"metadata":{"name":"e","namespace":"default"},"source":{"component":"service-controller"},"type":"Warning","reason":"Failed","message":%q,
			"involvedObject":{"kind":"Service","namespace":"default","name":"web"}}`, all)),
		"/api/v1/namespaces/kube-system/pods": list("Pod",
			fmt.Sprintf(`{"metadata":{"name":"ccm-1","namespace":"kube-system"},"spec":{"containers":[{"name":"c","image":"i:1",
			"args":["--v=2"],"env":[{"name":"ACCESS_KEY_SECRET","value":%q}]}]},"status":{"podIP":"127.0.0.1"}}`, all)),
		"/api/v1/namespaces/kube-system/pods/ccm-1/log": "I0101 \"Wrote to the cloud\" action=\"X\" " + all + "\n",
	}
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if text, ok := answers[r.URL.Path]; ok && r.URL.Query().Get("watch") == "" {
			fmt.Fprint(w, text)
			return
		}
		http.Error(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`, http.StatusForbidden)
	}
}

const inMisspelledField = "secret-in-a-misspelled-field"

// misspelled adds a field that the manager does not know.
func misspelled(config string) string {
	return strings.Replace(config, `"vpcid"`, fmt.Sprintf(`"accessKeySecrett": %q, "vpcid"`, inMisspelledField), 1)
}

// filesOf returns the files of the archive at a path, without the directory that they are in.
func filesOf(t *testing.T, path string) map[string]string {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	files := map[string]string{}
	for path, text := range testkit.Unpack(t, file) {
		_, name, _ := strings.Cut(path, "/")
		files[name] = text
	}
	return files
}

// TestSupportBundle: the archive has what can be read and names what cannot, also where the cloud refuses the key. No secret of any source
// is in it, in none of its forms, although all of the cluster has them.
func TestSupportBundle(t *testing.T) {
	t.Parallel()
	const token = "sts-token-of-the-environment"
	for name, test := range map[string]struct {
		secret string
		doctor string
	}{
		"key works":           {goodSecret, "cn-hangzhou"},
		"cloud refuses a key": {badSecret, "SignatureDoesNotMatch"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			secrets := []string{test.secret, token, bearer}
			api := httptest.NewServer(leaking(secrets...))
			t.Cleanup(api.Close)
			archive := filepath.Join(t.TempDir(), "bundle.tar.gz")
			args := []string{
				bundleName, "--file=" + archive, "--kubeconfig=" + w.kubeconfigWith(t, api.URL, bearer),
				"--cloud-config=" + w.file(t, misspelled(cloudConfig(goodID, test.secret, "cn-hangzhou"))),
				"--cluster-cidr=10.244.0.0/16",
			}
			// A token without a key is not used.
			env := append(w.env(), "ALIBABA_CLOUD_SECURITY_TOKEN="+token)
			var stderr strings.Builder
			got := selfexec.RunApart(t, &stderr, "cloud-controller-manager", env, args...)
			if got.Code != 0 {
				t.Fatalf("exit code %d; standard error:\n%s", got.Code, stderr.String())
			}
			for line := range strings.Lines(stderr.String()) {
				if !strings.HasPrefix(line, "missing: ") && !strings.HasPrefix(line, "The archive is ") {
					t.Errorf("beside what is missing, it prints: %s", line)
				}
			}
			files := filesOf(t, archive)
			for name, want := range map[string]string{
				"version.txt": "cloud-controller-manager ", "flags.txt": "--cluster-cidr=10.244.0.0/16", "cloud-config.yaml": "vpcid: vpc-emulator",
				"doctor.txt":  test.doctor,
				"doctor.json": `"checks"`, "services.json": `"Why"`, "nodes.json": `"n1"`, "events.txt": "Warning Failed Service default/web",
				"pods.json":      `"i:1"`,
				"logs/ccm-1.log": "Wrote to the cloud", "writes.txt": "ccm-1 I0101",
				"README.txt": "metrics/ccm-1.txt: metrics need a kubeconfig with a client certificate",
			} {
				if !strings.Contains(files[name], want) {
					t.Errorf("%s has no %q:\n%s", name, want, files[name])
				}
			}
			all := fmt.Sprint(files, stderr.String())
			for _, secret := range append(secrets, inMisspelledField) {
				for _, form := range []string{secret, base64.StdEncoding.EncodeToString([]byte(secret))} {
					if strings.Contains(all, form) {
						t.Errorf("the archive has %q", form)
					}
				}
			}
			again := selfexec.RunApart(t, &stderr, "cloud-controller-manager", env, args...)
			if again.Code != 1 || !strings.Contains(stderr.String(), "--file: ") {
				t.Errorf("where the file exists: exit code %d; standard error:\n%s", again.Code, stderr.String())
			}
		})
	}
}
