package realnode

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubelet "k8s.io/kubelet/config/v1beta1"
	"sigs.k8s.io/yaml"
)

// Node is what a machine is to the cluster.
type Node struct {
	Name    string
	Address netip.Addr
	// ClusterCIDR is the range of all pods.
	ClusterCIDR string
	// ClusterDNS is the address of the name server that pods ask; "" for none.
	ClusterDNS string
	// Kubeconfig and ProxyKubeconfig are the identities of kubelet and kube-proxy. CA is the cluster's authority, PEM.
	Kubeconfig, ProxyKubeconfig, CA []byte
	// LeaseDuration is how long the kubelet's Lease is good for; it renews it four times as often. At least a second.
	LeaseDuration time.Duration
}

// Where things are inside a machine.
const (
	containerdSocket = "/run/containerd/containerd.sock"
	containerdConfig = "/etc/containerd/config.toml"
	registriesDir    = "/etc/containerd/certs.d"
	kubernetesDir    = "/etc/kubernetes"
	cniDir           = "/etc/cni/net.d"
	flannelNetConf   = "/etc/kube-flannel/net-conf.json"
	logDir           = "/var/log"
	doneDir          = "/var/lib/machine-init"
	// PauseImage is the image of the container that holds a pod's namespaces together.
	PauseImage = "registry.k8s.io/pause:3.10"
)

// bootSpec is what the machine runs.
func (o Options) bootSpec() bootSpec {
	kubeconfig, proxyKubeconfig := kubernetesDir+"/kubelet.conf", kubernetesDir+"/kube-proxy.conf"
	programs := []program{{Name: "containerd", Args: []string{o.Tools.Containerd, "--config", containerdConfig}, Socket: containerdSocket}}
	for i, archive := range o.Images {
		programs = append(programs, program{
			Name: fmt.Sprintf("import-%d", i+1), Once: true,
			Args: []string{o.Tools.Ctr, "--namespace", "k8s.io", "images", "import", archive},
		})
	}
	programs = append(programs,
		program{Name: "kubelet", Args: []string{
			o.Program, "kubelet", "--config=" + kubernetesDir + "/kubelet.yaml", "--kubeconfig=" + kubeconfig,
			"--hostname-override=" + o.Node.Name, "--cloud-provider=external",
			// kube-proxy waits half a minute for the addresses of its Node, and the cloud controller manager, which would write them,
			// may need kube-proxy to reach the API server.
			"--node-ip=" + o.Node.Address.String(),
		}},
		program{
			Name: "flannel", Env: []string{"NODE_NAME=" + o.Node.Name},
			Args: []string{
				o.Program, "flannel", "--kubeconfig=" + kubeconfig, "--net-conf=" + flannelNetConf,
				"--public-ip=" + o.Node.Address.String(), "--cni-dir=" + cniDir,
			},
		},
		program{Name: "kube-proxy", Args: []string{
			o.Program, "kube-proxy", "--proxy-mode=nftables", "--kubeconfig=" + proxyKubeconfig, "--cluster-cidr=" + o.Node.ClusterCIDR,
			"--hostname-override=" + o.Node.Name, "--bind-address=" + o.Node.Address.String(), "--healthz-bind-address=0.0.0.0:10256",
			"--metrics-bind-address=127.0.0.1:10249",
			// The size of the connection table belongs to the host, not to the machine.
			"--conntrack-max-per-core=0",
		}})
	return bootSpec{Hostname: o.Node.Name, Disk: o.Dir, Programs: programs}
}

func (n Node) clusterDNS() []string {
	if n.ClusterDNS == "" {
		return nil
	}
	return []string{n.ClusterDNS}
}

// writeDisk lays out the machine's disk and writes what its programs are configured with. What an earlier boot left there stays.
func (o Options) writeDisk() error {
	for _, dir := range append([]string{doneDir, "/var/lib/kubelet"}, ownDirs...) {
		if err := os.MkdirAll(filepath.Join(o.Dir, dir), 0o755); err != nil {
			return fmt.Errorf("make the disk of %s: %w", o.Node.Name, err)
		}
	}
	// Sockets and process ids of the last boot mean nothing any more.
	if err := removeContents(filepath.Join(o.Dir, "/run")); err != nil {
		return fmt.Errorf("empty /run of %s: %w", o.Node.Name, err)
	}
	kubeletConfig, err := yaml.Marshal(o.kubeletConfig())
	if err != nil {
		return fmt.Errorf("encode the kubelet's configuration: %w", err)
	}
	for path, content := range map[string][]byte{
		containerdConfig:                       []byte(o.containerdConfig()),
		registriesDir + "/_default/hosts.toml": []byte(o.registries()),
		kubernetesDir + "/kubelet.yaml":        kubeletConfig,
		kubernetesDir + "/kubelet.conf":        o.Node.Kubeconfig,
		kubernetesDir + "/kube-proxy.conf":     o.Node.ProxyKubeconfig,
		kubernetesDir + "/pki/ca.crt":          o.Node.CA,
		flannelNetConf:                         fmt.Appendf(nil, `{"Network": %q, "Backend": {"Type": "alloc"}}`, o.Node.ClusterCIDR),
	} {
		target := filepath.Join(o.Dir, path)
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return fmt.Errorf("write %s of %s: %w", path, o.Node.Name, err)
		}
		if err := os.WriteFile(target, content, 0o600); err != nil {
			return fmt.Errorf("write %s of %s: %w", path, o.Node.Name, err)
		}
	}
	return nil
}

func (o Options) kubeletConfig() *kubelet.KubeletConfiguration {
	yes, no := true, false
	return &kubelet.KubeletConfiguration{
		TypeMeta: metav1.TypeMeta{APIVersion: kubelet.SchemeGroupVersion.String(), Kind: "KubeletConfiguration"},
		Address:  "0.0.0.0",
		Authentication: kubelet.KubeletAuthentication{
			Anonymous: kubelet.KubeletAnonymousAuthentication{Enabled: &no},
			Webhook:   kubelet.KubeletWebhookAuthentication{Enabled: &yes},
			X509:      kubelet.KubeletX509Authentication{ClientCAFile: kubernetesDir + "/pki/ca.crt"},
		},
		Authorization:            kubelet.KubeletAuthorization{Mode: kubelet.KubeletAuthorizationModeWebhook},
		CgroupDriver:             "cgroupfs",
		CgroupRoot:               o.Cgroup,
		EnforceNodeAllocatable:   []string{"none"},
		FailCgroupV1:             &no, // hosts of tests still have it
		FailSwapOn:               &no,
		ContainerRuntimeEndpoint: "unix://" + containerdSocket,
		// Pods do not ask the host's name server: it is not in the machine's network.
		ResolverConfig:                  new(string),
		ClusterDNS:                      o.Node.clusterDNS(),
		ClusterDomain:                   "cluster.local",
		LocalStorageCapacityIsolation:   &no,
		EvictionHard:                    map[string]string{"memory.available": "100Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
		MakeIPTablesUtilChains:          &no,
		NodeLeaseDurationSeconds:        int32(o.Node.LeaseDuration / time.Second),
		ShutdownGracePeriod:             metav1.Duration{},
		ShutdownGracePeriodCriticalPods: metav1.Duration{},
	}
}

func (o Options) containerdConfig() string {
	return fmt.Sprintf(`version = 2
disabled_plugins = ["io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs", "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.devmapper"]

[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = %q
  disable_apparmor = true
  restrict_oom_score_adj = true

  [plugins."io.containerd.grpc.v1.cri".registry]
    config_path = %q

  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = %q
    conf_dir = %q

  [plugins."io.containerd.grpc.v1.cri".containerd]
    default_runtime_name = "runc"

    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"

      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        BinaryName = %q
        SystemdCgroup = false
`, PauseImage, registriesDir, o.Tools.CNI, cniDir, o.Tools.Runc)
}

// registries makes one registry stand for all.
// Source: https://github.com/containerd/containerd/blob/main/docs/hosts.md
func (o Options) registries() string {
	return fmt.Sprintf("server = %[1]q\n\n[host.%[1]q]\n  capabilities = [\"pull\", \"resolve\"]\n", o.Registry)
}

// removeContents empties a directory.
func removeContents(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if err := os.RemoveAll(filepath.Join(dir, entry.Name())); err != nil {
			return err
		}
	}
	return nil
}
