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
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/selfexec"
)

func TestMain(m *testing.M) { selfexec.Main(m, main) }

const (
	goodID     = "emulator"
	goodSecret = "emulator-secret"
	badSecret  = "not-the-secret-of-the-key"
)

// world is what the program finds around it: a cloud, and an API server that answers just enough for the start.
type world struct {
	dir        string
	cloud      string // host:port
	kubeconfig string
}

func newWorld(t *testing.T) world {
	t.Helper()
	emulated, err := emulator.New(emulator.Options{})
	if err != nil {
		t.Fatal(err)
	}
	cloud := httptest.NewServer(emulated.Handler())
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/version" {
			fmt.Fprint(w, `{"major":"1","minor":"37","gitVersion":"v1.37.1"}`)
			return
		}
		http.Error(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`, http.StatusForbidden)
	}))
	t.Cleanup(func() {
		cloud.Close()
		api.Close()
		if err := emulated.Close(); err != nil {
			t.Error(err)
		}
	})
	w := world{dir: t.TempDir(), cloud: strings.TrimPrefix(cloud.URL, "http://")}
	w.kubeconfig = w.kubeconfigFor(t, api.URL)
	return w
}

func (w world) kubeconfigFor(t *testing.T, server string) string {
	t.Helper()
	return w.kubeconfigWith(t, server, "token")
}

func (w world) kubeconfigWith(t *testing.T, server, token string) string {
	t.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: server}
	config.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: token}
	config.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	config.CurrentContext = "x"
	path := filepath.Join(w.dir, fmt.Sprintf("kubeconfig-%d-%s", len(server), token))
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	return path
}

func (w world) file(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(w.dir, "cloud-config.conf")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func cloudConfig(id, secret, region string) string {
	encode := base64.StdEncoding.EncodeToString
	return fmt.Sprintf(`{"Global": {"accessKeyID": %q, "accessKeySecret": %q, "region": %q, "vpcid": "vpc-emulator", "vswitchid": "vsw-a"}}`,
		encode([]byte(id)), encode([]byte(secret)), region)
}

// env points the program at the emulated cloud.
func (w world) env() []string {
	return append(os.Environ(), "ALICLOUD_CLIENT_SCHEME=HTTP", "METADATA_ENDPOINT=http://127.0.0.1:1",
		"SLB_ENDPOINT="+w.cloud, "NLB_ENDPOINT="+w.cloud, "VPC_ENDPOINT="+w.cloud, "ECS_ENDPOINT="+w.cloud, "STS_ENDPOINT="+w.cloud)
}

func (w world) run(t *testing.T, args ...string) selfexec.Result {
	t.Helper()
	return selfexec.Run(t, "cloud-controller-manager", w.env(), append([]string{
		"--kubeconfig=" + w.kubeconfig, "--secure-port=0", "--leader-elect=false",
	}, args...)...)
}

// TestBadInput holds every mistake to the same form: exit code 1 and one line that names the place, the value and what is
// accepted; no stack trace, no secret, no endless retry.
func TestBadInput(t *testing.T) {
	t.Parallel()
	const cidr = "--cluster-cidr=10.244.0.0/16"
	good := func(t *testing.T, w world) string {
		t.Helper()
		return "--cloud-config=" + w.file(t, cloudConfig(goodID, goodSecret, "cn-hangzhou"))
	}
	with := func(content string) func(*testing.T, world) []string {
		return func(t *testing.T, w world) []string {
			t.Helper()
			t.Helper()
			return []string{"--cloud-config=" + w.file(t, content), cidr}
		}
	}
	tests := map[string]struct {
		args func(*testing.T, world) []string
		want []string
	}{
		"missing file": {
			func(_ *testing.T, w world) []string { return []string{"--cloud-config=" + w.dir + "/none.conf", cidr} },
			[]string{"--cloud-config: ", "/none.conf", "no such file", "accepted: "},
		},
		"unreadable file": {
			func(_ *testing.T, w world) []string { return []string{"--cloud-config=" + w.dir, cidr} },
			[]string{"--cloud-config: ", "directory"},
		},
		"malformed file": {with(`{"Global": {"region": `),
			[]string{"--cloud-config: ", "cloud-config.conf", "not valid YAML or JSON", "accepted: "}},
		"no file": {
			func(*testing.T, world) []string { return []string{cidr} },
			[]string{"--cloud-config: (not set)", "Global.region: not set", "accepted: "},
		},
		"unknown region": {with(cloudConfig(goodID, goodSecret, "cn-nowhere")), []string{`Global.region: "cn-nowhere"`, "accepted: "}},
		"unknown key": {with(cloudConfig("nobody", goodSecret, "cn-hangzhou")),
			[]string{"Global.accessKeyID", "InvalidAccessKeyId.NotFound", "accepted: "}},
		"wrong secret": {with(cloudConfig(goodID, badSecret, "cn-hangzhou")),
			[]string{"Global.accessKeySecret", "SignatureDoesNotMatch", "accepted: "}},
		"plain key": {
			with(`{"Global": {"accessKeyID": "` + goodID + `!", "accessKeySecret": "` + goodSecret + `!", "region": "cn-hangzhou"}}`),
			[]string{"Global.accessKeyID", "Global.accessKeySecret", "base64"},
		},
		"bad cluster CIDR": {
			func(t *testing.T, w world) []string {
				t.Helper()
				t.Helper()
				return []string{good(t, w), "--cluster-cidr=10.244.0.0/99"}
			},
			[]string{"--cluster-cidr", "10.244.0.0/99", "accepted: "},
		},
		"no cluster CIDR": {
			func(t *testing.T, w world) []string { t.Helper(); return []string{good(t, w)} },
			[]string{"--cluster-cidr", "--configure-cloud-routes=false", "accepted: "},
		},
		"unknown flag": {
			func(t *testing.T, w world) []string {
				t.Helper()
				t.Helper()
				return []string{good(t, w), cidr, "--cluster-cdir=x"}
			},
			[]string{"unknown flag: --cluster-cdir"},
		},
		"argument": {
			func(t *testing.T, w world) []string { t.Helper(); return []string{good(t, w), cidr, "start"} },
			[]string{`"start"`},
		},
		"missing credentials file": {
			func(t *testing.T, w world) []string {
				t.Helper()
				return []string{good(t, w), cidr, "--credentials-file=/does/not/exist"}
			},
			[]string{"credentials file /does/not/exist", "no such file", "accepted: "},
		},
		"endpoint of an unknown product": {
			func(t *testing.T, w world) []string {
				t.Helper()
				return []string{good(t, w), cidr, "--endpoints=ros=127.0.0.1:1"}
			},
			[]string{"--endpoints: ros", "accepted: one of slb, nlb, vpc, ecs, sts, quotas, metadata"},
		},
		"bad endpoint": {
			func(t *testing.T, w world) []string {
				t.Helper()
				return []string{good(t, w), cidr, "--endpoints=vpc=a b"}
			},
			[]string{`--endpoints: vpc: "a b"`, "accepted: "},
		},
		"bad address": {
			func(t *testing.T, w world) []string {
				t.Helper()
				return []string{good(t, w), cidr, "--pprof-bind-addr=6060"}
			},
			[]string{`--pprof-bind-addr: "6060"`, "accepted: "},
		},
		"bad batch size": {
			func(t *testing.T, w world) []string {
				t.Helper()
				return []string{good(t, w), cidr, "--sg-batch-size=0"}
			},
			[]string{"--sg-batch-size: 0", "accepted: 1 or more"},
		},
		"other provider": {
			func(t *testing.T, w world) []string {
				t.Helper()
				return []string{good(t, w), cidr, "--cloud-provider=aws"}
			},
			[]string{"--cloud-provider", `"aws"`, "accepted: "},
		},
		"no API server": {
			func(t *testing.T, w world) []string {
				t.Helper()
				return []string{good(t, w), cidr, "--kubeconfig=" + w.kubeconfigFor(t, "http://127.0.0.1:1")}
			},
			[]string{"--kubeconfig", "http://127.0.0.1:1", "no answer"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			got := w.run(t, test.args(t, w)...)
			if got.Code != 1 {
				t.Errorf("exit code %d, want 1", got.Code)
			}
			if limit := 2 * time.Minute; got.Took > limit {
				t.Errorf("it took %s, more than %s", got.Took, limit)
			}
			checkErrorLine(t, got.Output, test.want)
		})
	}
}

// checkErrorLine finds the one line of the program's own among the log lines, which begin with a level and a date.
func checkErrorLine(t *testing.T, output string, want []string) {
	t.Helper()
	var own []string
	for line := range strings.Lines(output) {
		if !isLogLine(line) {
			own = append(own, line)
		}
	}
	if len(own) != 1 {
		t.Fatalf("%d lines that are no log lines, want 1:\n%s", len(own), output)
	}
	for _, text := range want {
		if !strings.Contains(own[0], text) {
			t.Errorf("line %q does not say %q", own[0], text)
		}
	}
	for _, secret := range []string{goodSecret, badSecret, base64.StdEncoding.EncodeToString([]byte(badSecret))} {
		if strings.Contains(output, secret) {
			t.Errorf("the output shows a secret:\n%s", output)
		}
	}
}

func isLogLine(line string) bool {
	return len(line) > 5 && strings.ContainsRune("IWE", rune(line[0])) && strings.Trim(line[1:5], "0123456789") == ""
}

// TestAllocateNodeCIDRsIsReported: the flag is accepted, and one line says whose work that is.
func TestAllocateNodeCIDRsIsReported(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for flag, want := range map[string]int{"--allocate-node-cidrs=true": 1, "--allocate-node-cidrs=false": 0} {
		// A mistake ends the program when it has read its flags.
		result := w.run(t, "--cloud-config="+w.dir+"/none.conf", "--cluster-cidr=10.244.0.0/16", flag)
		if n := strings.Count(result.Output, "assigned by the kube-controller-manager"); n != want {
			t.Errorf("%s: logged %d times, want %d:\n%s", flag, n, want, result.Output)
		}
	}
}

// TestAPIServerFails: an API server that is there and cannot read its data is not a mistake in the cloud-config.
func TestAPIServerFails(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/version" {
			fmt.Fprint(w, `{"major":"1","minor":"37","gitVersion":"v1.37.1"}`)
			return
		}
		w.WriteHeader(http.StatusInternalServerError)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"etcdserver: request timed out","code":500}`)
	}))
	t.Cleanup(api.Close)
	result := w.run(t, "--cloud-config="+w.file(t, cloudConfig(goodID, goodSecret, "cn-hangzhou")), "--cluster-cidr=10.244.0.0/16",
		"--kubeconfig="+w.kubeconfigFor(t, api.URL+"/"))
	lines := strings.Split(strings.TrimSpace(result.Output), "\n")
	last := lines[len(lines)-1]
	if result.Code != 1 || !strings.Contains(last, "API server at "+api.URL) || !strings.Contains(last, "etcdserver: request timed out") ||
		strings.Contains(last, "--cloud-config") {
		t.Errorf("exit code %d, %q", result.Code, last)
	}
}
