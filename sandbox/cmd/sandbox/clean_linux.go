package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/cluster"
)

// platformCommands are those that only Linux has.
func platformCommands() []*cobra.Command { return []*cobra.Command{newCleanCommand()} }

func newCleanCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "clean",
		Short: "Remove what killed sandboxes with real machines have left behind on this host",
		Long: `Removes namespaces, cgroups and files of killed sandboxes with real machines, and prints their directories. It does not touch running
sandboxes. The next "sandbox up" or "sandbox demo" with real machines does the same.`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			cleaned, err := cluster.Clean()
			for _, dir := range cleaned {
				fmt.Fprintln(command.OutOrStdout(), dir)
			}
			return err
		},
	}
}
