package realnode

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func testOptions(t *testing.T) Options {
	t.Helper()
	return Options{
		Program: "/bin/machine", Dir: t.TempDir(), Cgroup: "/sbtest/i-1", Images: []string{"/tmp/images.tar", "/other/images.tar"},
		Registry: "http://203.0.113.80",
		Tools:    Tools{Containerd: "containerd", Ctr: "ctr", Runc: "/usr/sbin/runc", CNI: "/usr/lib/cni"},
		Node: Node{
			Name: "node-1", Address: netip.MustParseAddr("10.1.0.1"), ClusterCIDR: "10.244.0.0/16",
			ClusterDNS: "10.96.0.10",
			Kubeconfig: []byte("kubelet's"), ProxyKubeconfig: []byte("proxy's"), CA: []byte("ca"), LeaseDuration: 8 * time.Second,
		},
	}
}

func TestProgramsOfAMachine(t *testing.T) {
	t.Parallel()
	spec := testOptions(t).bootSpec()
	var names []string
	args := map[string][]string{}
	for _, p := range spec.Programs {
		names = append(names, p.Name)
		args[p.Name] = p.Args
	}
	// Images come before the kubelet: a pod that finds none waits ten seconds for its next try.
	want := []string{"containerd", "import-1", "import-2", "kubelet", "flannel", "kube-proxy"}
	if !slices.Equal(names, want) {
		t.Errorf("programs %v, want %v", names, want)
	}
	for _, flag := range []string{
		"--cloud-provider=external", "--hostname-override=node-1", "--node-ip=10.1.0.1",
	} {
		if !slices.Contains(args["kubelet"], flag) {
			t.Errorf("the kubelet has no %s: %v", flag, args["kubelet"])
		}
	}
	if slices.ContainsFunc(args["kubelet"], func(flag string) bool { return strings.HasPrefix(flag, "--provider-id") }) {
		t.Error("the kubelet is given its provider ID, which is this project's to find")
	}
}

func TestDiskKeepsItsDataAndLosesRun(t *testing.T) {
	t.Parallel()
	opts := testOptions(t)
	if err := opts.writeDisk(); err != nil {
		t.Fatal(err)
	}
	kept, lost := filepath.Join(opts.Dir, "var/lib/kept"), filepath.Join(opts.Dir, "run/lost")
	for _, file := range []string{kept, lost} {
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := opts.writeDisk(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(kept); err != nil {
		t.Errorf("after a reboot: %v", err)
	}
	if _, err := os.Stat(lost); !os.IsNotExist(err) {
		t.Errorf("/run has survived a reboot: %v", err)
	}
	hosts, err := os.ReadFile(filepath.Join(opts.Dir, registriesDir, "_default/hosts.toml"))
	if err != nil || !strings.Contains(string(hosts), `[host."http://203.0.113.80"]`) {
		t.Errorf("the container runtime's registries are\n%s%v", hosts, err)
	}
	config, err := os.ReadFile(filepath.Join(opts.Dir, kubernetesDir, "kubelet.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"nodeLeaseDurationSeconds: 8\n", "cgroupRoot: /sbtest/i-1\n", "clusterDNS:\n- 10.96.0.10\n"} {
		if !strings.Contains(string(config), want) {
			t.Errorf("the kubelet's configuration has no %q:\n%s", want, config)
		}
	}
}

func TestToolsThatAreMissing(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Log("not root: only that is logged") // the branch below needs root and an empty PATH
		if _, err := FindTools(); !errors.Is(err, ErrNotRoot) {
			t.Errorf("got %v", err)
		}
		return
	}
	t.Setenv("PATH", t.TempDir())
	_, err := FindTools()
	if err == nil {
		t.Fatal("an empty PATH has everything")
	}
	for _, want := range []string{"containerd (apt-get install containerd)", "runc (apt-get install runc)", "nft (apt-get install nftables)"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
}
