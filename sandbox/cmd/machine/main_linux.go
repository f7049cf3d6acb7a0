// Command machine is the programs of a real machine: its first process, kubelet, kube-proxy and Flannel, which share nearly all their
// code. Only sandboxes with real machines run it.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // their programs register these metrics, too
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubeproxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"

	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/flannel"
	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/realnode"
)

// programs are the commands by the first argument, after which the arguments are those of the program.
var programs = map[string]func() *cobra.Command{
	realnode.InitCommand: newInitCommand,
	"kubelet":            func() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) },
	"kube-proxy":         kubeproxy.NewProxyCommand,
	"flannel":            newFlannelCommand,
}

func main() {
	if len(os.Args) < 2 || programs[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "machine: init, kubelet, kube-proxy and flannel are accepted; \"sandbox up --node-kind real\" runs them")
		os.Exit(1)
	}
	command := programs[os.Args[1]]()
	os.Args = os.Args[1:]
	os.Exit(cli.Run(command))
}

func newInitCommand() *cobra.Command {
	return &cobra.Command{
		Use: realnode.InitCommand, Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return realnode.Init() },
	}
}

func newFlannelCommand() *cobra.Command {
	var opts flannel.Options
	command := &cobra.Command{
		Use: "flannel", Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error { return flannel.Run(command.Context(), opts) },
	}
	flags := command.Flags()
	flags.StringVar(&opts.Kubeconfig, "kubeconfig", "", "identity of the machine")
	flags.StringVar(&opts.NetConf, "net-conf", "", "the network and its backend")
	flags.StringVar(&opts.PublicIP, "public-ip", "", "address of the machine")
	flags.StringVar(&opts.CNIDir, "cni-dir", "", "directory of the CNI configuration")
	return command
}
