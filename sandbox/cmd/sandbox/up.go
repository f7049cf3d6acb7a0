package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/cluster"
)

func newUpCommand() *cobra.Command {
	var opts cluster.Options
	var config string
	command := &cobra.Command{
		Use:   "up --dir DIR",
		Short: "Run a cluster in the foreground until SIGINT or SIGTERM",
		Long: `Runs etcd, kube-apiserver, kube-controller-manager and kube-scheduler, an emulated Alibaba Cloud, and nodes on its instances:
light nodes in this process on loopback addresses, or real machines with containers. Writes these files to DIR:

  kubeconfig         for clients, as administrator
  emulator           the URL of the emulated cloud
  cloud-config.conf  for cloud-controller-manager --cloud-config

Prints "ready" when clients can use the cluster, then how to reach it, the address of the console, and commands to go on with. On SIGINT and SIGTERM, it stops everything and removes these files.`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := checkUp(opts); err != nil {
				return err
			}
			if config != "" {
				var err error
				if opts.Emulator.Config, err = cloud.LoadConfig(config); err != nil {
					return err
				}
			}
			opts.Progress = command.ErrOrStderr()
			return up(command, opts)
		},
	}
	flags := command.Flags()
	flags.StringVar(&opts.Dir, "dir", "", "directory for all files of the sandbox; created if it does not exist (required)")
	flags.IntVar(&opts.Nodes, "nodes", 3, "initial number of ECS instances")
	addNodeKind(flags, &opts.NodeKind)
	flags.IntVar(&opts.OnPremises, "on-premises", 0, "number of machines that belong to no cloud")
	flags.IntVar(&opts.VirtualNodes, "virtual-nodes", 0, "number of virtual nodes, whose pods have their own network interfaces (real nodes)")
	flags.StringVar(&opts.BinDir, "bin-dir", "",
		"directory of the built programs, to run pods of cloud-controller-manager and provider-initor on light nodes, and to build images for real nodes (default: the directory of this program)")
	flags.StringSliceVar(&opts.Images, "images", nil, "archives of additional container images, as written by docker save (real nodes)")
	flags.StringVar(&opts.Published, "published", "",
		"directory with the archives of make image, to run the programs of this project from these images (default: images made of the programs in --bin-dir) (real nodes)")
	flags.StringVar(&opts.ClusterDNS, "cluster-dns", "", "address of the name server of pods; the sandbox has none (real nodes)")
	flags.StringVar(&opts.OpenKruise, "open-kruise", "",
		"directory that hack/kruise/build.sh created, to run the real OpenKruise manager for BroadcastJobs")
	addKubernetes(flags, &opts.Kubernetes)
	flags.StringVar(&opts.PodCIDR, "pod-cidr", "",
		"range of the pod CIDRs of nodes: a /24 per node and, after a comma, a /64 of an IPv6 range (default: an IPv4 range with room to grow)")
	flags.StringVar(&config, "emulator-config", "",
		"file with the resources in the cloud, as for alicloud-emulator --config (default: built in)")
	flags.DurationVar(&opts.Emulator.Latency, "latency", 0, "time to add to every call of the cloud's API")
	flags.DurationVar(&opts.Emulator.Settle, "settle", 0, "duration of asynchronous state changes in the cloud")
	flags.StringVar(&opts.Emulator.RateLimits, "rate-limits", "off", "rate limits of the cloud's API: off or published")
	flags.StringVar(&opts.AuditLog, "audit-log", "",
		"file to append one line of JSON to for each request of a ServiceAccount to the API server (default: none)")
	flags.BoolVar(&opts.NodeIP, "node-ip", false, "start kubelets as with --node-ip, so that Nodes report their InternalIP from the start")
	return command
}

func checkUp(opts cluster.Options) error {
	switch {
	case opts.Dir == "":
		return errors.New("--dir is not set: it must name a directory for the files of the sandbox")
	case opts.Nodes < 0:
		return fmt.Errorf("--nodes is %d: it must be 0 or more", opts.Nodes)
	case opts.OnPremises < 0:
		return fmt.Errorf("--on-premises is %d: it must be 0 or more", opts.OnPremises)
	case opts.VirtualNodes < 0:
		return fmt.Errorf("--virtual-nodes is %d: it must be 0 or more", opts.VirtualNodes)
	case opts.ClusterDNS != "" && net.ParseIP(opts.ClusterDNS) == nil:
		return fmt.Errorf("--cluster-dns is %q: an IP address is accepted", opts.ClusterDNS)
	}
	if err := checkRanges(opts); err != nil {
		return err
	}
	for _, archive := range opts.Images {
		if _, err := os.Stat(archive); err != nil {
			return fmt.Errorf("--images: %w", err)
		}
	}
	if err := checkKubernetes(opts.Kubernetes); err != nil {
		return err
	}
	return checkNodeKind(opts.NodeKind)
}

// checkRanges rejects ranges that have no room for a node, and other values that would only end in a cluster that never becomes ready.
func checkRanges(opts cluster.Options) error {
	if err := checkPodCIDR(opts); err != nil {
		return err
	}
	if opts.Emulator.Latency < 0 || opts.Emulator.Settle < 0 {
		return errors.New("--latency and --settle: durations of 0 or more are accepted")
	}
	if limits := opts.Emulator.RateLimits; limits != "" && limits != "off" && limits != "published" {
		return fmt.Errorf("--rate-limits: %q: off and published are accepted", limits)
	}
	return nil
}

// Prefix lengths of the pod CIDRs of nodes.
const (
	nodeBits4 = 24
	nodeBits6 = 64
)

func checkPodCIDR(opts cluster.Options) error {
	nodes := opts.AllNodes()
	for text := range strings.SplitSeq(opts.PodRange(), ",") {
		pods, err := netip.ParsePrefix(text)
		nodeBits := nodeBits4
		if pods.Addr().Is6() {
			nodeBits = nodeBits6
		}
		if err != nil || pods != pods.Masked() || pods.Bits() > nodeBits {
			return fmt.Errorf("--pod-cidr: %q: an IPv4 range of at least a /24, or an IPv6 range of at least a /64, is accepted, for example 10.244.0.0/16", text)
		}
		room := uint64(1) << min(nodeBits-pods.Bits(), nodeBits4)
		switch {
		case uint64(nodes) <= room:
		case opts.PodCIDR == "":
			return fmt.Errorf("--nodes is %d, and there are %d nodes of all kinds: at most %d are accepted", opts.Nodes, nodes, room)
		default:
			return fmt.Errorf("--pod-cidr: %q has room for %d nodes, and %d are to start", text, room, nodes)
		}
	}
	return nil
}

func addNodeKind(flags *pflag.FlagSet, kind *cluster.NodeKind) {
	flags.StringVar((*string)(kind), "node-kind", string(cluster.Light),
		"light (kubelets in this process, no root), or real (machines with containers in kernel namespaces, Linux and root)")
}

func checkNodeKind(kind cluster.NodeKind) error {
	if kind != cluster.Light && kind != cluster.Real {
		return fmt.Errorf("--node-kind is %q: light and real are accepted", kind)
	}
	return nil
}

// up runs a cluster until the command's context ends or a part of the cluster fails.
func up(command *cobra.Command, opts cluster.Options) error {
	ctx := command.Context()
	sandbox, err := cluster.Start(ctx, opts)
	if err != nil {
		if ctx.Err() != nil && errors.Is(err, context.Canceled) {
			return nil // stopped while starting: that is what was asked for
		}
		return err
	}
	fmt.Fprint(command.OutOrStdout(), "ready\n", nextSteps(sandbox))
	err = sandbox.Wait(ctx)
	if err != nil {
		fmt.Fprintln(command.ErrOrStderr(), sandbox.KeepLogs())
	}
	stopped := sandbox.Stop()
	if err != nil && errors.Is(stopped, err) { // the part that failed says so once more
		return stopped
	}
	return errors.Join(err, stopped)
}

// nextSteps is what a reader needs next, to be pasted into another terminal. The nodes have the taint of an uninitialized node until the
// second command runs.
func nextSteps(c *cluster.Cluster) string {
	return fmt.Sprintf(`
  export KUBECONFIG=%[1]s
  console: %[2]s/console/

Next:
  kubectl get nodes
  ALICLOUD_CLIENT_SCHEME=HTTP cloud-controller-manager --cloud-config=%[3]s --kubeconfig=%[1]s --cluster-cidr=%[4]s --leader-elect=false
  kubectl create service loadbalancer web --tcp=80
`, c.Kubeconfig(), c.Cloud.URL, c.CloudConfig(), c.PodCIDR())
}

// addKubernetes adds the flag for the control plane of another release. The variable has all sandboxes of a test suite run it.
func addKubernetes(flags *pflag.FlagSet, directory *string) {
	flags.StringVar(directory, "kubernetes", os.Getenv("SANDBOX_KUBERNETES"),
		"directory that hack/kubernetes/build.sh created, to run the control plane of another release of Kubernetes (default: $SANDBOX_KUBERNETES)")
}

func checkKubernetes(directory string) error {
	if directory == "" {
		return nil
	}
	for _, program := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler"} {
		if _, err := os.Stat(filepath.Join(directory, program)); err != nil {
			return fmt.Errorf("--kubernetes: %q: a directory with %s is accepted, as hack/kubernetes/build.sh creates it", directory, program)
		}
	}
	return nil
}
