//go:build !linux

package main

import "github.com/spf13/cobra"

// nodePrograms is empty: real machines are Linux.
var nodePrograms map[string]func() *cobra.Command

// platformCommands are those that only Linux has.
func platformCommands() []*cobra.Command { return nil }
