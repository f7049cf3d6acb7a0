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
		Short: "Remove what killed sandboxes with real machines have left on this host",
		Long: `Removes namespaces, cgroups and files of sandboxes with real machines that were killed, and prints their directories. Those that run
are left alone. The next "sandbox up" or "sandbox demo" with real machines does the same.`,
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
