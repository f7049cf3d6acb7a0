package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/initor"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/initor/audit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/provider"
)

const checkLong = `Verifies the provider ID of every node: ok, missing, foreign (of another cloud), wrong (unreadable, shared by two nodes, or not
the ID of the node's instance), unverified (ECS does not show the instance to this key) or not-ecs. With --cloud-config, it compares the
IDs with the instances in ECS.

It changes nothing, and skips virtual-kubelet nodes.

Exit codes:
  0  every node is ok, unverified or not-ecs, or foreign without an ECS instance
  1  a flag is invalid, or the API server or ECS rejects a request or does not respond
  4  a node has no provider ID, or a wrong one`

func newCheckCommand() *cobra.Command {
	w := newWorkstation(os.Getenv)
	var cloudConfig string
	command := newWorkstationCommand("check", "Verify the provider IDs of all nodes", checkLong,
		func(command *cobra.Command) error { return runCheck(command, w, cloudConfig) })
	w.access.addFlags(command.Flags())
	w.addOutputFlag(command.Flags())
	command.Flags().StringVar(&cloudConfig, "cloud-config", "",
		"cloud-config file with region, vpcid and an access key, to compare the provider IDs with the instances that have the addresses of the nodes")
	return command
}

func runCheck(command *cobra.Command, w *workstation, cloudConfig string) error {
	if err := checkOutput(w.output); err != nil {
		return err
	}
	nodes, err := w.machines(command.Context())
	if err != nil {
		return err
	}
	findings, err := findingsOf(command, nodes, cloudConfig)
	if err != nil {
		return err
	}
	verdicts := audit.Verify(nodes, findings)
	if err := writeVerdicts(command.OutOrStdout(), w.output, verdicts); err != nil {
		return err
	}
	bad := 0
	for _, verdict := range verdicts {
		if verdict.Bad() {
			bad++
		}
	}
	if bad > 0 {
		return fmt.Errorf("%w: %d of %d have no provider ID, a foreign one or a wrong one", errNodes, bad, len(verdicts))
	}
	return nil
}

// findingsOf asks ECS about the nodes, if there is a cloud-config to do so.
func findingsOf(command *cobra.Command, nodes []*corev1.Node, cloudConfig string) (map[string]initor.Finding, error) {
	if cloudConfig == "" {
		return nil, nil
	}
	source, err := ecsSource(cloudConfig, provider.EnvironmentFrom(os.Getenv))
	if err != nil {
		return nil, fmt.Errorf("--cloud-config %q: %w", cloudConfig, err)
	}
	return source.Lookup(command.Context(), nodes)
}
