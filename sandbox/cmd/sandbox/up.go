package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"

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
		Long: `Runs etcd, kube-apiserver, kube-controller-manager and kube-scheduler, an emulated Alibaba Cloud and nodes on its instances:
light ones in this process, on loopback addresses, or real machines with containers. Writes into DIR:

  kubeconfig         the administrator's kubeconfig
  emulator           the URL of the emulated cloud
  cloud-config.conf  for cloud-controller-manager --cloud-config

Prints "ready" when a client can use the cluster. SIGINT and SIGTERM end everything and remove these files.`,
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
	flags.StringVar(&opts.Dir, "dir", "", "directory for all files of the sandbox; made when it does not exist (required)")
	flags.IntVar(&opts.Nodes, "nodes", 3, "number of ECS instances to begin with")
	addNodeKind(flags, &opts.NodeKind)
	flags.IntVar(&opts.OnPremises, "on-premises", 0, "number of machines that are in no cloud")
	flags.IntVar(&opts.VirtualNodes, "virtual-nodes", 0, "number of virtual nodes, whose pods have network interfaces of their own (real nodes)")
	flags.IntVar(&opts.WindowsNodes, "windows-nodes", 0, "number of further instances whose Nodes have the label of Windows (real nodes)")
	flags.StringVar(&opts.BinDir, "bin-dir", "", "directory of the built programs: pods of provider-initor on light nodes really run then; real nodes have their images (default: that of this program)")
	flags.StringSliceVar(&opts.Images, "images", nil, "archives of further container images, as docker save writes them (real nodes)")
	flags.StringVar(&opts.ClusterDNS, "cluster-dns", "", "address of a name server that pods ask; the sandbox has none of its own (real nodes)")
	flags.StringVar(&opts.OpenKruise, "open-kruise", "",
		"directory that hack/kruise/build.sh made: the cluster then has OpenKruise's BroadcastJobs, with the real manager")
	flags.StringVar(&opts.PodCIDR, "pod-cidr", "", "range of the nodes' pod CIDRs, a /24 for each node, and a /64 of a range of IPv6 behind a comma (default: one of IPv4 with room to grow)")
	flags.StringVar(&opts.Cloud, "cloud", "", "URL of another sandbox with real nodes, to be a second cluster in its cloud; --pod-cidr must differ (real nodes)")
	flags.StringVar(&config, "emulator-config", "", "file with what exists in the cloud, as for alicloud-emulator --config (default: built in)")
	flags.DurationVar(&opts.Emulator.Latency, "latency", 0, "time added to every call of the cloud's API")
	flags.DurationVar(&opts.Emulator.Settle, "settle", 0, "time that asynchronous states of the cloud take")
	flags.StringVar(&opts.Emulator.RateLimits, "rate-limits", "off", "rate limits of the cloud's API: off or published")
	flags.StringVar(&opts.AuditLog, "audit-log", "", "file that takes a line of JSON for each request of a service account to the API server (default: none)")
	flags.BoolVar(&opts.NodeIP, "node-ip", false, "start kubelets as with --node-ip: Nodes report their InternalIP from the beginning")
	return command
}

func checkUp(opts cluster.Options) error {
	switch {
	case opts.Dir == "":
		return errors.New("--dir is not given: it must name a directory for the sandbox's files")
	case opts.Nodes < 0:
		return fmt.Errorf("--nodes is %d: it must be 0 or more", opts.Nodes)
	case opts.OnPremises < 0:
		return fmt.Errorf("--on-premises is %d: it must be 0 or more", opts.OnPremises)
	case opts.VirtualNodes < 0 || opts.WindowsNodes < 0:
		return fmt.Errorf("--virtual-nodes is %d and --windows-nodes %d: they must be 0 or more", opts.VirtualNodes, opts.WindowsNodes)
	case opts.ClusterDNS != "" && net.ParseIP(opts.ClusterDNS) == nil:
		return fmt.Errorf("--cluster-dns is %q: an IP address is accepted", opts.ClusterDNS)
	}
	for _, archive := range opts.Images {
		if _, err := os.Stat(archive); err != nil {
			return fmt.Errorf("--images: %w", err)
		}
	}
	return checkNodeKind(opts.NodeKind)
}

func addNodeKind(flags *pflag.FlagSet, kind *cluster.NodeKind) {
	flags.StringVar((*string)(kind), "node-kind", string(cluster.Light),
		"light: kubelets in this process, no root; real: machines with containers in namespaces of the kernel, Linux and root")
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
	fmt.Fprintln(command.OutOrStdout(), "ready")
	err = sandbox.Wait(ctx)
	return errors.Join(err, sandbox.Stop())
}
